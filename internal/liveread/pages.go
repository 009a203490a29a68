// Package liveread reads from the API server past the caches: page by page, and once for many callers. It sends nothing
// itself: callers pass the function that sends one request.
//
// Pages exists because the pager of client-go does not continue a list whose continue token has expired: it fails, or lists
// everything again in one response, so that objects are visited twice (TestAListGoesOnWhenItsContinueTokenExpires and
// TestMaxUnavailableCountsNodesOnceWhenAListExpires in test/integration).
package liveread

import (
	"errors"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pages are the pages of a list, in order. List sends one request, with the continue token of the page
// before; the first one has none. After an error there is no further page.
//
// The API server forgets the state that a continue token refers to after some minutes (410 Expired). Its
// answer contains another token, which continues after the same object with newer state. Pages uses it, so
// a long list ends however often etcd is compacted. Each object that exists during the whole list is in
// one page, in a state that is not older than the first request; none is in two pages.
func Pages[L metav1.ListInterface](list func(token string) (L, error)) iter.Seq2[L, error] {
	return func(yield func(L, error) bool) {
		for token := ""; ; {
			page, err := list(token)
			if newer := continuation(err); newer != "" && token != "" {
				page, err = list(newer)
			}
			if !yield(page, err) || err != nil {
				return
			}
			if token = page.GetContinue(); token == "" {
				return
			}
		}
	}
}

// continuation is the token with which a list goes on whose continue token has expired; empty if the
// error is another one.
func continuation(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// Package liveread reads from the API server instead of the caches: page by page, and once for many callers. It has no
// client: callers pass the function that sends one request.
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

// Pages returns the pages of a list, in order. List sends one request, with the continue token of the previous page; the
// first request has none. After an error there is no further page.
//
// A continue token expires after some minutes, when etcd is compacted (410 Expired). The response contains another token,
// which continues after the same object with newer state. Pages uses it, so a long list always ends. Each object that
// exists during the whole list is in exactly one page, in a state that is not older than the first request.
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

// continuation is the token that continues a list whose continue token has expired; empty for any other error.
func continuation(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

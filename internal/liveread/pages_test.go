package liveread_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/internal/liveread"
)

// pages is a list of so many pages, whose tokens are the numbers of the pages.
func pages(count int) func(token string) (*corev1.NodeList, error) {
	return func(token string) (*corev1.NodeList, error) {
		number := 0
		if token != "" {
			number, _ = strconv.Atoi(token)
		}
		list := &corev1.NodeList{Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(number)}}}}
		if number+1 < count {
			list.Continue = strconv.Itoa(number + 1)
		}
		return list, nil
	}
}

func expired(next string) error {
	err := apierrors.NewResourceExpired("too old")
	err.ErrStatus.Continue = next
	return err
}

func TestPages(t *testing.T) {
	failure := errors.New("no route to host")
	for name, test := range map[string]struct {
		// fails are the errors of requests, by token.
		fails map[string]error
		want  []string
		err   error
	}{
		"all pages":                  {want: []string{"0", "1", "2"}},
		"a token that has expired":   {fails: map[string]error{"1": expired("01")}, want: []string{"0", "1", "2"}},
		"every token has expired":    {fails: map[string]error{"1": expired("01"), "2": expired("02")}, want: []string{"0", "1", "2"}},
		"another error":              {fails: map[string]error{"1": failure}, want: []string{"0"}, err: failure},
		"the new token expires, too": {fails: map[string]error{"1": expired("01"), "01": expired("01")}, want: []string{"0"}, err: expired("01")},
		"no new token":               {fails: map[string]error{"2": expired("")}, want: []string{"0", "1"}, err: expired("")},
		"the first request":          {fails: map[string]error{"": expired("01")}, err: expired("01")},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			var failed error
			for page, err := range liveread.Pages(func(token string) (*corev1.NodeList, error) {
				if err := test.fails[token]; err != nil {
					return nil, err
				}
				return pages(3)(token)
			}) {
				if failed = err; err == nil {
					got = append(got, page.Items[0].Name)
				}
			}
			if !slices.Equal(got, test.want) || (failed == nil) != (test.err == nil) || failed != nil && failed.Error() != test.err.Error() {
				t.Errorf("got %v and the error %v, want %v and %v", got, failed, test.want, test.err)
			}
		})
	}
}

func TestNoPageIsReadAfterTheLoopEnds(t *testing.T) {
	requests := 0
	for range liveread.Pages(func(token string) (*corev1.NodeList, error) {
		requests++
		return pages(3)(token)
	}) {
		break
	}
	if requests != 1 {
		t.Errorf("%d requests, want 1", requests)
	}
}

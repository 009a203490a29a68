package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/readygate/readygate/internal/testenv"
)

// requests counts the requests of a user, by verb and resource and, where they failed, code.
func requests(auditLog, user string) (map[string]int, error) {
	count := map[string]int{}
	err := testenv.Audited(auditLog, user, func(event *auditv1.Event) { count[kindOf(event)]++ })
	return count, err
}

func kindOf(event *auditv1.Event) string {
	what := event.Verb + " " + event.RequestURI
	if event.ObjectRef != nil {
		what = event.Verb + " " + strings.TrimSuffix(event.ObjectRef.Resource+"/"+event.ObjectRef.Subresource, "/")
	}
	if event.ResponseStatus != nil && event.ResponseStatus.Code >= 400 {
		what += fmt.Sprintf(" refused with %d", event.ResponseStatus.Code)
	}
	return what
}

// listed are the counts in words.
func listed(count map[string]int) string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(count)) {
		all = append(all, fmt.Sprintf("%d × %s", count[what], what))
	}
	if all == nil {
		return "none"
	}
	return strings.Join(all, ", ")
}

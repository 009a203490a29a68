package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// requests counts the requests of a user, by verb and resource and, where they failed, code.
func requests(auditLog, user string) (map[string]int, error) {
	file, err := os.Open(auditLog)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	count := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), user) {
			continue
		}
		var event auditv1.Event
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.User.Username != user {
			continue // the last line may not be complete yet
		}
		count[kindOf(&event)]++
	}
	return count, lines.Err()
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

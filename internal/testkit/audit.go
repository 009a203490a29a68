package testkit

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Request is one finished request, as the API server's audit log has it.
type Request struct {
	User, Agent, Verb, Resource, Subresource, Namespace, Name string
	Code                                                      int32
	At                                                        time.Time
}

var writes = []string{"create", "update", "patch", "delete", "deletecollection"}

// IsWrite says whether the request asked for a change.
func (r Request) IsWrite() bool { return slices.Contains(writes, r.Verb) }

// Requests are all finished requests of a user so far.
func (c *Cluster) Requests(t testing.TB, user string) []Request {
	t.Helper()
	var requests []Request
	c.Audited(t, user, func(event *auditv1.Event) {
		if event.ObjectRef != nil {
			requests = append(requests, requestOf(event))
		}
	})
	return requests
}

// Audited visits all finished requests of a user since the test began to use the control plane.
func (c *Cluster) Audited(t testing.TB, user string, visit func(*auditv1.Event)) {
	t.Helper()
	err := Audited(c.AuditLog(), user, func(event *auditv1.Event) {
		if event.RequestReceivedTimestamp.After(c.since) {
			visit(event)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Audited visits all finished requests of a user in an audit log.
func Audited(log, user string, visit func(*auditv1.Event)) error {
	file, err := os.Open(log)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), user) {
			continue
		}
		var event auditv1.Event
		if json.Unmarshal(lines.Bytes(), &event) == nil && event.User.Username == user { // the last line may not be complete yet
			visit(&event)
		}
	}
	return lines.Err()
}

func requestOf(event *auditv1.Event) Request {
	r := Request{
		User:        event.User.Username,
		Agent:       event.UserAgent,
		Verb:        event.Verb,
		Resource:    event.ObjectRef.Resource,
		Subresource: event.ObjectRef.Subresource,
		Namespace:   event.ObjectRef.Namespace,
		Name:        event.ObjectRef.Name,
		At:          event.RequestReceivedTimestamp.Time,
	}
	if event.ResponseStatus != nil {
		r.Code = event.ResponseStatus.Code
	}
	return r
}

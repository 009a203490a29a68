package testenv

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Request is one finished request in the API server's audit log.
type Request struct {
	User, Agent, Verb, Resource, Subresource, Namespace, Name string
	Code                                                      int32
	At                                                        time.Time
}

var writes = []string{"create", "update", "patch", "delete", "deletecollection"}

// IsWrite reports whether the verb of the request changes an object.
func (r Request) IsWrite() bool { return slices.Contains(writes, r.Verb) }

// auditTail is the part of the audit log that was read for a user.
type auditTail struct {
	end      int64 // of the last line that was read
	requests []Request
}

// Requests returns all finished requests of a user since the test began to use the control plane.
func (c *Cluster) Requests(t testing.TB, user string) []Request {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tails == nil {
		c.tails = map[string]*auditTail{}
	}
	tail := c.tails[user]
	if tail == nil {
		tail = &auditTail{end: c.auditStart}
		c.tails[user] = tail
	}
	end, err := Audited(c.AuditLog(), tail.end, user, func(event *auditv1.Event) {
		if event.ObjectRef != nil {
			tail.requests = append(tail.requests, requestOf(event))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	tail.end = end
	return slices.Clone(tail.requests)
}

// Audited visits all finished requests of a user since the test began to use the control plane.
func (c *Cluster) Audited(t testing.TB, user string, visit func(*auditv1.Event)) {
	t.Helper()
	if _, err := Audited(c.AuditLog(), c.auditStart, user, visit); err != nil {
		t.Fatal(err)
	}
}

// Audited visits the requests of a user in the lines of an audit log that begin at an offset, and returns the end of
// the last complete line.
func Audited(log string, start int64, user string, visit func(*auditv1.Event)) (end int64, err error) {
	file, err := os.Open(log)
	if err != nil {
		return start, err
	}
	defer file.Close() //nolint:errcheck // only read
	if _, err := file.Seek(start, io.SeekStart); err != nil {
		return start, err
	}
	for lines := bufio.NewReaderSize(file, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return start, nil
		}
		if err != nil {
			return start, err
		}
		start += int64(len(line))
		var event auditv1.Event
		if bytes.Contains(line, []byte(user)) && json.Unmarshal(line, &event) == nil && event.User.Username == user {
			visit(&event)
		}
	}
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

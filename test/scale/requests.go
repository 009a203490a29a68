package main

import (
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/readygate/readygate/internal/testenv"
)

// requestLog counts the requests of a user in the API server's audit log, as report.Result describes them.
type requestLog struct {
	path, user string
	end        int64 // offset up to which the log was read

	requests map[string]int
	written  time.Time // when the API server received the last write
}

// read counts the requests since the last call.
func (l *requestLog) read() (err error) {
	l.end, err = testenv.Audited(l.path, l.end, l.user, l.count)
	return err
}

// reset reads the log and discards the counts.
func (l *requestLog) reset() error {
	err := l.read()
	l.requests = map[string]int{}
	return err
}

func (l *requestLog) count(event *auditv1.Event) {
	const throttled = 429
	resource := event.RequestURI
	if ref := event.ObjectRef; ref != nil {
		resource = strings.TrimSuffix(ref.Resource+"/"+ref.Subresource, "/")
	}
	if resource == "leases" || event.ResponseStatus != nil && event.ResponseStatus.Code == throttled {
		return
	}
	l.requests[event.Verb+" "+resource]++
	read := event.Verb == "get" || event.Verb == "list" || event.Verb == "watch"
	if !read && event.RequestReceivedTimestamp.After(l.written) {
		l.written = event.RequestReceivedTimestamp.Time
	}
}

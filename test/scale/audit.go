package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// ledger follows the API server's audit log and counts what one user asks for. It reads only
// what is new.
type ledger struct {
	path, user string
	offset     int64

	requests, refused map[string]int
	// written is when the last write was received, leases aside.
	written time.Time
}

func newLedger(path, user string) *ledger {
	return &ledger{path: path, user: user, requests: map[string]int{}, refused: map[string]int{}}
}

// reset forgets what was counted; what happened before is not counted any more.
func (l *ledger) reset() error {
	err := l.read()
	l.requests, l.refused = map[string]int{}, map[string]int{}
	return err
}

// read counts what is new in the log.
func (l *ledger) read() error {
	file, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	switch info, err := file.Stat(); {
	case err != nil:
		return err
	case info.Size() < l.offset:
		return errors.New("the audit log is shorter than what was read of it: it was rotated, and requests were missed; start the API server with --audit-log-maxsize=0")
	}
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return ignoreEOF(err) // an incomplete line is read next time
		}
		l.offset += int64(len(line))
		if !bytes.Contains(line, []byte(l.user)) {
			continue
		}
		var event auditv1.Event
		if json.Unmarshal(line, &event) == nil && event.User.Username == l.user {
			l.count(&event)
		}
	}
}

func ignoreEOF(err error) error {
	if err == io.EOF { //nolint:errorlint // as bufio returns it
		return nil
	}
	return err
}

func (l *ledger) count(event *auditv1.Event) {
	resource := event.RequestURI
	if ref := event.ObjectRef; ref != nil {
		resource = strings.TrimSuffix(ref.Resource+"/"+ref.Subresource, "/")
	}
	if resource == "leases" {
		return
	}
	l.requests[event.Verb+" "+resource]++
	if event.ResponseStatus != nil && event.ResponseStatus.Code >= 400 {
		l.refused[strconv.Itoa(int(event.ResponseStatus.Code))]++
	}
	if !isRead(event.Verb) && event.RequestReceivedTimestamp.After(l.written) {
		l.written = event.RequestReceivedTimestamp.Time
	}
}

func isRead(verb string) bool { return verb == "get" || verb == "list" || verb == "watch" }

package check_test

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/readygate/readygate/internal/reporter/check"
)

// TestMain makes names resolve without a network: no test depends on what the name server of
// this machine, or on having one.
func TestMain(m *testing.M) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go serveNames(conn)
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	os.Exit(m.Run())
}

// serveNames returns two addresses for two.invalid, fails for broken.invalid, does not
// respond for silent.invalid, and returns not found for all other names.
func serveNames(conn net.PacketConn) {
	buffer := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var query dnsmessage.Message
		if query.Unpack(buffer[:n]) != nil || len(query.Questions) == 0 {
			continue
		}
		question := query.Questions[0]
		answer := dnsmessage.Message{
			Header:    dnsmessage.Header{ID: query.ID, Response: true, RecursionAvailable: true},
			Questions: query.Questions,
		}
		switch name := question.Name.String(); {
		case strings.HasPrefix(name, "silent.invalid."):
			continue
		case strings.HasPrefix(name, "broken.invalid."):
			answer.RCode = dnsmessage.RCodeServerFailure
		case name != "two.invalid.":
			answer.RCode = dnsmessage.RCodeNameError
		case question.Type == dnsmessage.TypeA:
			for _, last := range []byte{1, 2} {
				answer.Answers = append(answer.Answers, dnsmessage.Resource{
					Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET},
					Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, last}},
				})
			}
		}
		if packed, err := answer.Pack(); err == nil {
			_, _ = conn.WriteTo(packed, from)
		}
	}
}

// long is a timeout that no test waits for.
const long = 20 * time.Second

// brief is a timeout that tests wait for.
const brief = 300 * time.Millisecond

func healthy(reason, message string) check.Observation {
	return check.Observation{Result: check.Healthy, Reason: reason, Message: message}
}

func unhealthy(reason, message string) check.Observation {
	return check.Observation{Result: check.Unhealthy, Reason: reason, Message: message}
}

func failed(reason, message string) check.Observation {
	return check.Observation{Result: check.Error, Reason: reason, Message: message}
}

func answers(message string) check.Observation {
	return healthy(check.ReasonEndpointOK, message)
}

func isNotReady(message string) check.Observation {
	return unhealthy(check.ReasonEndpointNotReady, message)
}

func noAnswer(message string) check.Observation {
	return failed(check.ReasonEndpointConnectionError, message)
}

// made returns the check of a valid spec.
func made(t testing.TB, spec check.Spec, env check.Env) check.Check {
	t.Helper()
	c, err := check.New(spec, env)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ran returns the result of one run of the check. It must return soon after its timeout.
func ran(t testing.TB, c check.Check, timeout time.Duration) check.Observation {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	began := time.Now()
	got := c.Run(ctx)
	if took := time.Since(began); took > timeout+5*time.Second {
		t.Errorf("a run with a timeout of %v took %v", timeout, took)
	}
	return got
}

// observed returns the result of one run of the spec.
func observed(t testing.TB, spec check.Spec, timeout time.Duration) check.Observation {
	t.Helper()
	return ran(t, made(t, spec, check.Env{Node: "here", Timeout: timeout}), timeout)
}

func expect(t testing.TB, got, want check.Observation) {
	t.Helper()
	if got != want {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}

// eventually waits until a condition of the system holds.
func eventually(t testing.TB, what string, isSo func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !isSo(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 10s it is still not so: %s", what)
		}
	}
}

package probe_test

import (
	"io"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/podgate/probe"
)

func at(address string) podrule.Probe { return podrule.Probe{Kind: podrule.Reach, Address: address} }

func TestAcceptedConnectionCountsAsReached(t *testing.T) {
	t.Parallel()
	expect(t, asked(t, &probe.Asker{}, at(listen(t).Addr().String())), yes)
}

func TestConnectionResetCountsAsReached(t *testing.T) {
	t.Parallel()
	expect(t, asked(t, &probe.Asker{}, at(refused(t))), yes)
}

// An application that listens sees a connection that closes without data and without a reset.
func TestReachProbeClosesItsConnectionWithoutData(t *testing.T) {
	t.Parallel()
	listener := listen(t)
	expect(t, asked(t, &probe.Asker{}, at(listener.Addr().String())), yes)
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // only read
	if said, err := io.ReadAll(conn); err != nil || len(said) > 0 {
		t.Errorf("the application reads %q, %v", said, err)
	}
}

func TestDialErrorDecidesTheReachResult(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want podrule.Answer
	}{
		"accepted":              {nil, yes},
		"reset":                 {syscall.ECONNREFUSED, yes},
		"accepted and reset":    {syscall.ECONNRESET, yes},
		"no route to the host":  {syscall.EHOSTUNREACH, no("no route to the host")},
		"no route":              {syscall.ENETUNREACH, no("no route to the network")},
		"no answer to a packet": {syscall.ETIMEDOUT, no("no response within 1s")},
		"not permitted":         {syscall.EPERM, no("permission denied")},
		"no port of this side":  {syscall.EADDRNOTAVAIL, no("the address is not available")},
	} {
		var times atomic.Int32
		answer := asked(t, &probe.Asker{Dial: dialling(&times, test.err)}, at("10.0.0.7:9"))
		if answer != test.want || times.Load() != 1 {
			t.Errorf("%s: %+v after %d tries, want %+v", name, answer, times.Load(), test.want)
		}
	}
}

func TestConnectionTimeoutIsNotReached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asker := &probe.Asker{Dial: dropped}
		expect(t, asker.Ask(t.Context(), at("10.0.0.7:9")), no("no response within 1s"))
	})
}

// A pod without an address must not be mistaken for this machine, which responds.
func TestOnlyPodAddressesAreDialed(t *testing.T) {
	t.Parallel()
	var times atomic.Int32
	asker := &probe.Asker{Dial: dialling(&times, nil)}
	for _, address := range []string{"", ":9", "0.0.0.0:9", "[::]:9", "[::ffff:0.0.0.0]:9", "localhost:9", "10.0.0.7", "10.0.0.7:0", "10.0.0.7:99999"} {
		expect(t, asked(t, asker, at(address)), no("the pod has no usable address"))
	}
	if times.Load() != 0 {
		t.Errorf("tried %d times", times.Load())
	}
	expect(t, asked(t, asker, at("[fd00::7]:9")), yes)
}

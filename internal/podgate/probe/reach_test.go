package probe_test

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/podgate/probe"
)

func at(address string) podrule.Probe { return podrule.Probe{Kind: podrule.Reach, Address: address} }

// fromPeer is at, and asks a peer as well.
func fromPeer(address string) podrule.Probe {
	return podrule.Probe{Kind: podrule.Reach, Address: address, Peer: true}
}

func TestWhoAcceptsIsReached(t *testing.T) {
	t.Parallel()
	expect(t, asked(t, &probe.Asker{}, at(listen(t).Addr().String())), yes)
}

func TestWhoResetsIsReached(t *testing.T) {
	t.Parallel()
	expect(t, asked(t, &probe.Asker{}, at(refused(t))), yes)
}

// An application that listens sees nothing but the end of a connection, and no reset.
func TestAConnectionIsClosedWithoutAWord(t *testing.T) {
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

func TestWhatComesOfATryDecides(t *testing.T) {
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
		"no answer to a packet": {syscall.ETIMEDOUT, no("no answer within 1s")},
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

func TestWhoDoesNotAnswerIsNotReached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asker := &probe.Asker{Dial: dropped}
		expect(t, asker.Ask(t.Context(), at("10.0.0.7:9")), no("no answer within 1s"))
	})
}

// A pod without an address must not be mistaken for this machine, which does answer.
func TestOnlyAnAddressIsTried(t *testing.T) {
	t.Parallel()
	var times atomic.Int32
	asker := &probe.Asker{Dial: dialling(&times, nil)}
	for _, address := range []string{"", ":9", "0.0.0.0:9", "[::]:9", "[::ffff:0.0.0.0]:9", "localhost:9", "10.0.0.7", "10.0.0.7:0", "10.0.0.7:99999"} {
		expect(t, asked(t, asker, at(address)), no("the pod has no address that can be tried"))
	}
	if times.Load() != 0 {
		t.Errorf("tried %d times", times.Load())
	}
	expect(t, asked(t, asker, at("[fd00::7]:9")), yes)
}

// peers answer what they are given, and count how often they are asked.
type peers struct {
	answer podrule.Answer
	asked  []string
}

func (p *peers) Reach(_ context.Context, address string) podrule.Answer {
	p.asked = append(p.asked, address)
	return p.answer
}

func TestAPeerIsAskedAfterTheOwnNodeHasReachedThePod(t *testing.T) {
	t.Parallel()
	unreached := no("another node does not reach it")
	for name, test := range map[string]struct {
		probe podrule.Probe
		err   error
		peer  podrule.Answer
		want  podrule.Answer
		asked int
	}{
		"both reach it":                {probe: fromPeer("10.0.0.7:9"), peer: yes, want: yes, asked: 1},
		"the peer does not":            {probe: fromPeer("10.0.0.7:9"), peer: unreached, want: unreached, asked: 1},
		"the own node does not":        {probe: fromPeer("10.0.0.7:9"), err: syscall.EHOSTUNREACH, peer: yes, want: no("no route to the host")},
		"only the own node is asked":   {probe: at("10.0.0.7:9"), peer: unreached, want: yes},
		"the own node's reset is fine": {probe: fromPeer("10.0.0.7:9"), err: syscall.ECONNREFUSED, peer: yes, want: yes, asked: 1},
	} {
		var times atomic.Int32
		others := &peers{answer: test.peer}
		answer := asked(t, &probe.Asker{Dial: dialling(&times, test.err), Peers: others}, test.probe)
		if answer != test.want || len(others.asked) != test.asked || test.asked > 0 && others.asked[0] != test.probe.Address {
			t.Errorf("%s: %+v, peers were asked for %v", name, answer, others.asked)
		}
	}
}

func TestWithoutPeersAPodIsNotReachedFromOne(t *testing.T) {
	t.Parallel()
	var times atomic.Int32
	asker := &probe.Asker{Dial: dialling(&times, nil)}
	expect(t, asked(t, asker, fromPeer("10.0.0.7:9")), no("no peer: podgate.peer.enabled is off"))
	expect(t, asked(t, asker, at("10.0.0.7:9")), yes)
}

// slowPeers answer only when nobody waits any more.
type slowPeers struct{}

func (slowPeers) Reach(ctx context.Context, _ string) podrule.Answer {
	<-ctx.Done()
	return no("no peer answered")
}

// The limit of a question is that of both tries.
func TestPeersHaveWhatIsLeftOfTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asker := &probe.Asker{Peers: slowPeers{}, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }}
		expect(t, asker.Ask(t.Context(), fromPeer("10.0.0.7:9")), no("no peer answered"))
	})
}

package check_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/reporter/check"
)

const (
	itself = "here"   // the reporter of the node that the check runs on
	other  = "there"  // one of another node
	silent = "silent" // one that does not answer
	alien  = "alien"  // something that is not a reporter
	sick   = "sick"   // one that answers with an error
	lost   = "lost"   // one that sends elsewhere
	rude   = "rude"   // one that hangs up: as good as silent, and no test waits for it
)

// service responds like each of these in order, and then like the last one. Without any, it
// refuses connections.
func service(t testing.TB, nodes ...string) string {
	t.Helper()
	if len(nodes) == 0 {
		return refused(t)
	}
	var asked atomic.Int64
	elsewhere := web(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(check.PeerNodeHeader, other) })
	return web(t, func(w http.ResponseWriter, r *http.Request) {
		turn := min(int(asked.Add(1)), len(nodes)) - 1
		switch node := nodes[turn]; {
		case r.URL.Path != check.PeerPath:
			w.WriteHeader(http.StatusNotFound)
		case node == silent:
			<-r.Context().Done()
		case node == sick:
			w.Header().Set(check.PeerNodeHeader, other)
			w.WriteHeader(http.StatusServiceUnavailable)
		case node == lost:
			http.Redirect(w, r, elsewhere.URL+check.PeerPath, http.StatusFound)
		case node == rude:
			panic(http.ErrAbortHandler)
		case node != alien:
			w.Header().Set(check.PeerNodeHeader, node)
		}
	}).Listener.Addr().String()
}

// Results of a peers check. THERE is the address of ready peers.
var (
	reached     = healthy(check.ReasonPeerReached, "a reporter on another node responded over the pod network")
	waits       = unhealthy(check.ReasonNoPeers, "waiting up to 30s for a response from a reporter of another node")
	waitsLong   = unhealthy(check.ReasonNoPeers, "waiting up to 5m0s for a response from a reporter of another node")
	alone       = healthy(check.ReasonNoPeers, "no reporter of another node responded within 30s, so this node counts as the only one")
	aloneLong   = healthy(check.ReasonNoPeers, "no reporter of another node responded within 5m0s, so this node counts as the only one")
	deserted    = healthy(check.ReasonNoPeers, "no other node has a ready reporter, so there is no peer to reach")
	unreachable = failed(check.ReasonPeersUnreachable, "no reporter of another node responds at THERE, although some are ready")
	broken      = failed(check.ReasonPeersUnreachable, "no reporter of another node has responded since the network failed")
)

func said(want check.Observation, there string) check.Observation {
	want.Message = strings.ReplaceAll(want.Message, "THERE", there)
	return want
}

// clock is a time that the test advances.
type clock struct{ now time.Time }

func peers(t testing.TB, spec check.Peers, timeout time.Duration) (check.Check, *clock) {
	t.Helper()
	c := made(t, check.Spec{Peers: &spec}, check.Env{Node: itself, Timeout: timeout, HoldDown: time.Minute})
	at := &clock{time.Unix(1e9, 0)}
	check.SetClock(c, func() time.Time { return at.now })
	return c, at
}

// step is a run of a check, with the time after the first one.
type step struct {
	at              time.Duration
	ready, everyone []string // who is behind the Services
	want            check.Observation
}

func TestPeers(t *testing.T) {
	t.Parallel()
	const tick = time.Nanosecond
	type nodes = []string
	var (
		me       = nodes{itself}
		cut      = nodes{rude}         // others are there, and do not answer
		meAndCut = nodes{itself, rude} // and the node itself, which does
		hidden   = nodes{rude, itself} // the same, but for the last tries
		met      = step{0, nodes{other}, nodes{other}, reached}
		lostIt   = []step{met, {10 * time.Second, meAndCut, meAndCut, unreachable}, {70 * time.Second, meAndCut, meAndCut, unreachable}}
	)
	after := func(first []step, then ...step) []step { return append(append([]step{}, first...), then...) }
	for name, steps := range map[string][]step{
		"a peer that is ready answers":       {{0, nodes{other}, nil, reached}},
		"one answers after this node":        {{0, nodes{itself, itself, itself, other}, nil, reached}},
		"one answers at the last try":        {{0, nodes{itself, itself, itself, itself, itself, itself, itself, other}, nil, reached}},
		"one answers after one that is sick": {{0, nodes{sick, other}, nil, reached}},
		"one that is not ready answers, and none is ready": {
			{0, nil, nodes{other}, reached},
		},
		"one that is not ready answers, and those that are ready do not": {
			{0, cut, nodes{itself, other}, reached},
			{time.Hour, meAndCut, nodes{rude, other}, reached},
		},
		"one that is not ready answers, and only this node is ready": {
			{0, me, nodes{other}, reached},
		},

		"there is no peer from the start": {
			{0, nil, nil, waits},
			{30*time.Second - tick, nil, nil, waits},
			{30 * time.Second, nil, nil, alone},
			{31 * time.Second, nil, nil, deserted},
			{time.Hour, nil, nil, deserted},
		},
		"only itself is there from the start": {
			{0, nil, me, waits},
			{30*time.Second - tick, nil, me, waits},
			{30 * time.Second, nil, me, alone},
			{31 * time.Second, me, me, deserted},
			{time.Hour, me, me, deserted},
		},
		"others are there from the start, and silent": {
			{0, nil, meAndCut, waitsLong},
			{30 * time.Second, nil, hidden, waitsLong},
			{5*time.Minute - tick, nil, cut, waitsLong},
			{5 * time.Minute, nil, meAndCut, aloneLong},
			{6 * time.Minute, nil, meAndCut, deserted},
		},
		"others are silent from the start, and ready": {
			{0, cut, meAndCut, waitsLong},
			{5*time.Minute - tick, cut, meAndCut, waitsLong},
			{5 * time.Minute, cut, meAndCut, aloneLong},
			{6 * time.Minute, cut, meAndCut, unreachable},
		},
		"others that are silent come later": {
			{0, nil, me, waits},
			{29 * time.Second, nil, meAndCut, waitsLong},
			{5 * time.Minute, nil, meAndCut, aloneLong},
		},
		"others are silent, and chance hides them from some runs": {
			{0, nil, meAndCut, waitsLong},
			{29 * time.Second, nil, me, waitsLong},
			{40 * time.Second, nil, meAndCut, waitsLong},
			{70*time.Second - tick, nil, me, waitsLong},
			{70 * time.Second, nil, me, alone}, // they are gone
		},
		"the wait ends with an answer": {
			{0, nil, meAndCut, waitsLong},
			{time.Minute, nil, nodes{other}, reached},
			{61 * time.Second, me, me, deserted},
		},
		"a proxy drops what goes to a Service without peers, and this node is alone": {
			{0, cut, me, waits},
			{30 * time.Second, cut, me, alone},
			{31 * time.Second, me, me, deserted},
		},
		"the node cannot reach itself, and is alone": { // it might be another node
			{0, nil, cut, waitsLong},
			{5 * time.Minute, nil, cut, aloneLong},
		},
		"the node cannot reach itself, and others answer": {
			{0, nodes{rude, rude, other}, nil, reached},
			{time.Minute, nodes{rude, rude, other}, nil, reached},
		},

		"peers that were met, and are ready, are silent": {
			met, {time.Minute, cut, cut, unreachable}, {61 * time.Second, meAndCut, me, unreachable},
		},
		"some are silent, and then this node answers": {met, {time.Minute, hidden, me, unreachable}},
		"peers that were met are gone":                {met, {time.Second, nil, nil, deserted}, {time.Hour, nil, nil, deserted}},
		"peers that were met are not ready anymore":   {met, {time.Second, me, meAndCut, deserted}, {time.Hour, me, cut, deserted}},
		"one that is switched off is silent until it leaves the Service": {
			met,
			{10 * time.Second, meAndCut, meAndCut, unreachable},
			{70*time.Second - tick, meAndCut, meAndCut, unreachable},
			{70 * time.Second, me, me, deserted},
			{time.Hour, me, me, deserted},
			// The time without a response starts again.
			{2 * time.Hour, meAndCut, meAndCut, unreachable},
			{2*time.Hour + time.Minute - tick, meAndCut, meAndCut, unreachable},
			{2*time.Hour + time.Minute, nil, meAndCut, deserted},
		},
		"a network that broke": after(lostIt,
			step{71 * time.Second, me, meAndCut, broken},
			step{72 * time.Second, nil, meAndCut, broken},
			step{time.Hour, nil, nil, broken},
			step{2 * time.Hour, meAndCut, meAndCut, unreachable},
			step{3 * time.Hour, nil, cut, broken},
		),
		"a network that failed recovers, and a ready peer answers": after(lostIt,
			step{time.Hour, nodes{other}, nil, reached},
			step{2 * time.Hour, nil, nil, deserted},
		),
		"a network that failed recovers, and an unready peer answers": after(lostIt,
			step{time.Hour, nil, nodes{rude, itself, other}, reached},
			step{2 * time.Hour, nil, nil, deserted},
		),
		"a network that failed recovers, and fails again": after(lostIt,
			step{time.Hour, nil, nodes{other}, reached},
			step{2 * time.Hour, meAndCut, meAndCut, unreachable},
			step{2*time.Hour + time.Second, me, meAndCut, deserted},
		),
		"one long silence between two runs": {
			met, {time.Hour, meAndCut, meAndCut, unreachable}, {2 * time.Hour, me, me, deserted},
		},
		"a node that was alone has peers that are ready and silent": {
			{0, nil, nil, waits}, {30 * time.Second, nil, nil, alone},
			{time.Minute, meAndCut, meAndCut, unreachable}, {2 * time.Minute, meAndCut, meAndCut, unreachable}, {3 * time.Minute, me, meAndCut, broken},
		},
		"the clock goes back": {
			{0, nil, nil, waits}, {time.Minute, nil, nil, alone}, {-time.Hour, nil, nil, deserted},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, at := peers(t, check.Peers{Ready: "a:1", Everyone: "b:1"}, long)
			start := at.now
			for _, one := range steps {
				ready := service(t, one.ready...)
				check.SetServices(c, ready, service(t, one.everyone...))
				at.now = start.Add(one.at)
				if got, want := ran(t, c, long), said(one.want, ready); got != want {
					t.Errorf("after %v\n got %+v\nwant %+v", one.at, got, want)
				}
			}
			// A check that is made again, as after a restart, knows nothing of all this.
			c, _ = peers(t, check.Peers{Ready: service(t, me...), Everyone: service(t, meAndCut...)}, long)
			expect(t, ran(t, c, long), waitsLong)
		})
	}
}

// The first run shows which addresses respond: a missing response may be from another
// node.
func TestPeersAtEachAddress(t *testing.T) {
	t.Parallel()
	answering := func(nodes ...string) func(testing.TB) string {
		return func(t testing.TB) string { t.Helper(); return service(t, nodes...) }
	}
	named := func(name string) func(testing.TB) string {
		return func(testing.TB) string { return name }
	}
	for name, test := range map[string]struct {
		address func(testing.TB) string
		silent  bool
	}{
		"only this node answers": {answering(itself), false},
		"no peer":                {refused, false},
		"unknown name":           {named("unknown.invalid:80"), false},
		"this node, and no peer where one was": {func(t testing.TB) string {
			_, port, _ := net.SplitHostPort(service(t, itself))
			return "two.invalid:" + port
		}, false},
		"no response":                          {answering(silent), true},
		"packets are dropped":                  {blackhole, true},
		"this node answers, and others do not": {answering(itself, silent), true},
		"what answers is not a reporter":       {answering(alien), true},
		"what answers has an error":            {answering(sick), true},
		"what answers sends elsewhere":         {answering(lost), true},
		"what answers hangs up":                {answering(rude), true},
		"what answers does not speak HTTP":     {func(t testing.TB) string { return accept(t, greet("SSH-2.0-OpenSSH_9.9\r\n")) }, true},
		"what answers does not stop": {func(t testing.TB) string {
			return accept(t, forever("HTTP/1.1 200 OK\r\n", "X: y\r\n", 0, new(atomic.Int64)))
		}, true},
		"the name server fails":                  {named("broken.invalid:80"), true},
		"the name server does not answer either": {named("silent.invalid:80"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout, first, second := long, waits, deserted
			if test.silent {
				timeout, first, second = brief, waitsLong, unreachable
			}
			c, _ := peers(t, check.Peers{Ready: refused(t), Everyone: test.address(t)}, timeout)
			expect(t, ran(t, c, timeout), first)
			expect(t, ran(t, c, timeout), first)

			ready := test.address(t)
			c, _ = peers(t, check.Peers{Ready: ready, Everyone: refused(t), Patience: check.For(0)}, timeout)
			expect(t, ran(t, c, timeout), healthy(check.ReasonNoPeers, "no reporter of another node responded within 0s, so this node counts as the only one"))
			expect(t, ran(t, c, timeout), said(second, ready))
			expect(t, ran(t, c, timeout), said(second, ready))
		})
	}
}

// Ready peers that do not respond leave time to find an unready one, and a
// slow peer is no worse than a missing one.
func TestARunTakesNoLongerThanItsTimeout(t *testing.T) {
	t.Parallel()
	const timeout = 3 * time.Second
	for name, test := range map[string]struct {
		everyone []string
		want     check.Observation
	}{
		"all are silent":                              {[]string{silent}, waitsLong},
		"one that is not ready answers":               {[]string{other}, reached},
		"one that is not ready answers after another": {[]string{silent, itself, other}, reached},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := peers(t, check.Peers{Ready: service(t, silent), Everyone: service(t, test.everyone...)}, timeout)
			began := time.Now()
			expect(t, c.Run(context.Background()), test.want)
			if took := time.Since(began); took > timeout+timeout/2 { // without limits it would be three times as long
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestPeersCheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c, _ := peers(t, check.Peers{Ready: service(t, silent), Everyone: service(t, silent)}, time.Hour)
	ran(t, c, brief)
}

func TestAllAddressesOfANameAreTried(t *testing.T) {
	t.Parallel()
	// 127.0.0.1 is this node, 127.0.0.2 another: a dialer would only ever take the first.
	address := service(t, itself)
	_, port, _ := net.SplitHostPort(address)
	listener, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Skip("this system has no second address, or not this port of it:", err)
	}
	acceptOn(t, listener, say("HTTP/1.1 200 OK\r\n"+check.PeerNodeHeader+": there\r\nContent-Length: 0\r\n\r\n"))
	c, _ := peers(t, check.Peers{Ready: "two.invalid:" + port, Everyone: refused(t)}, long)
	var found int
	for range 20 { // each of 8 tries is one of two: that all miss is 1 of 256
		if ran(t, c, long) == reached {
			found++
		}
	}
	if found < 10 {
		t.Errorf("the other node was reached in %d of 20 runs", found)
	}
}

func TestWaitForTheFirstPeer(t *testing.T) {
	t.Parallel()
	c, at := peers(t, check.Peers{Ready: refused(t), Everyone: service(t, itself), Patience: check.For(time.Hour)}, long)
	expect(t, ran(t, c, long), unhealthy(check.ReasonNoPeers, "waiting up to 1h0m0s for a response from a reporter of another node"))
	at.now = at.now.Add(time.Hour - 1)
	expect(t, ran(t, c, long), unhealthy(check.ReasonNoPeers, "waiting up to 1h0m0s for a response from a reporter of another node"))
	at.now = at.now.Add(1)
	expect(t, ran(t, c, long), healthy(check.ReasonNoPeers, "no reporter of another node responded within 1h0m0s, so this node counts as the only one"))

	// The longest that one can ask for, ten times.
	c, at = peers(t, check.Peers{Ready: refused(t), Everyone: service(t, rude), Patience: check.For(check.MaxDuration)}, long)
	for range 2 {
		expect(t, ran(t, c, long), unhealthy(check.ReasonNoPeers, "waiting up to 87600h0m0s for a response from a reporter of another node"))
		at.now = at.now.Add(10*check.MaxDuration - 1)
	}

	// None at all.
	c, _ = peers(t, check.Peers{Ready: refused(t), Everyone: service(t, rude), Patience: check.For(0)}, long)
	expect(t, ran(t, c, long), healthy(check.ReasonNoPeers, "no reporter of another node responded within 0s, so this node counts as the only one"))
}

// Missing responses count when they have lasted as long as the condition's hold-down, and not if
// one response arrived.
func TestSilenceOfPeersCountsAfterTheHoldDown(t *testing.T) {
	t.Parallel()
	for _, holdDown := range []time.Duration{0, time.Second, time.Hour} {
		c := made(t, check.Spec{Peers: &check.Peers{Ready: "a:1", Everyone: "b:1"}}, check.Env{Node: itself, Timeout: long, HoldDown: holdDown})
		at := &clock{time.Unix(1e9, 0)}
		check.SetClock(c, func() time.Time { return at.now })
		empty, quiet := refused(t), service(t, rude)
		check.SetServices(c, service(t, other), empty)
		expect(t, ran(t, c, long), reached)
		check.SetServices(c, quiet, empty)
		expect(t, ran(t, c, long), said(unreachable, quiet))
		check.SetServices(c, empty, empty)
		expect(t, ran(t, c, long), deserted)
		check.SetServices(c, quiet, empty)
		expect(t, ran(t, c, long), said(unreachable, quiet))
		at.now = at.now.Add(holdDown)
		expect(t, ran(t, c, long), said(unreachable, quiet))
		check.SetServices(c, empty, empty)
		expect(t, ran(t, c, long), broken)
	}
}

func TestAServiceIsFoundByItsVariables(t *testing.T) {
	t.Parallel()
	host, port, _ := net.SplitHostPort(service(t, other))
	variables := map[string]string{
		"NETWORK_REPORTER_SERVICE_HOST": host, "NETWORK_REPORTER_SERVICE_PORT": port,
		"NETWORK_REPORTER_ALL_SERVICE_HOST": "fd00::1", "NETWORK_REPORTER_ALL_SERVICE_PORT": "9445",
		"ODD_SERVICE_HOST": host, "ODD_SERVICE_PORT": "tcp://10.0.0.1:80",
		"FAR_SERVICE_HOST": host, "FAR_SERVICE_PORT": "65536",
		"HALF_SERVICE_PORT": port,
		"BARE_SERVICE_HOST": host,
	}
	env := check.Env{Node: itself, Timeout: long, Variable: func(name string) string { return variables[name] }}
	for _, spec := range []check.Peers{
		{Ready: "network-reporter", Everyone: "network-reporter-all"},
		{Ready: "network-reporter", Everyone: "a:1"},
		{Ready: net.JoinHostPort(host, port), Everyone: "network-reporter-all"},
	} {
		expect(t, ran(t, made(t, check.Spec{Peers: &spec}, env), long), reached)
	}
	// And as everyone.
	spec := check.Peers{Ready: refused(t), Everyone: "network-reporter"}
	expect(t, ran(t, made(t, check.Spec{Peers: &spec}, env), long), reached)

	const missing = " are not set: create the Service with a cluster IP, in the namespace of this pod and before the pod; or set host:port"
	for name, want := range map[string]string{
		"other-one": `is "other-one", and the variables OTHER_ONE_SERVICE_HOST and OTHER_ONE_SERVICE_PORT` + missing,
		"odd":       `is "odd", and the variables ODD_SERVICE_HOST and ODD_SERVICE_PORT` + missing,
		"far":       `is "far", and the variables FAR_SERVICE_HOST and FAR_SERVICE_PORT` + missing,
		"half":      `is "half", and the variables HALF_SERVICE_HOST and HALF_SERVICE_PORT` + missing,
		"bare":      `is "bare", and the variables BARE_SERVICE_HOST and BARE_SERVICE_PORT` + missing,
		"":          `is not set, must be a Service of the pod's namespace, e.g. network-reporter, or host:port`,
	} {
		for field, spec := range map[string]check.Peers{
			"ready":    {Ready: name, Everyone: "network-reporter"},
			"everyone": {Ready: "network-reporter", Everyone: name},
		} {
			if _, err := check.New(check.Spec{Peers: &spec}, env); err == nil || err.Error() != "peers."+field+" "+want {
				t.Errorf("%s %q:\n got %v\nwant %s", field, name, err, want)
			}
		}
	}
	// The same Service by two names: no peer would respond anymore once all nodes are not ready.
	const same = `, which has the same address as ready: must be another Service, which selects all reporters (publishNotReadyAddresses: true), e.g. network-reporter-all`
	for _, everyone := range []string{"network-reporter", net.JoinHostPort(host, port)} {
		if _, err := check.New(check.Spec{Peers: &check.Peers{Ready: "network-reporter", Everyone: everyone}}, env); err == nil || err.Error() != `peers.everyone is "`+everyone+`"`+same {
			t.Errorf("%s: %v", everyone, err)
		}
	}
}

// The errors of load balancers for a Service without endpoints cannot all be
// produced here.
func TestAMissingEndpointDiffersFromATimeout(t *testing.T) {
	t.Parallel()
	dialing := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	for name, test := range map[string]struct {
		err  error
		none bool
	}{
		"refused":               {dialing(syscall.ECONNREFUSED), true},
		"not permitted":         {dialing(syscall.EPERM), true},
		"an unknown name":       {&net.DNSError{Name: "x", IsNotFound: true}, true},
		"a name server failing": {&net.DNSError{Name: "x"}, false},
		"no route to the host":  {dialing(syscall.EHOSTUNREACH), false},
		"reset":                 {dialing(syscall.ECONNRESET), false},
		"anything else":         {errors.New("else"), false},
	} {
		if got := check.IsNoEndpoint(test.err); got != test.none {
			t.Errorf("%s: no endpoint is %v", name, got)
		}
	}
}

func TestMessagesOfPeersAreShort(t *testing.T) {
	t.Parallel()
	for _, one := range []check.Observation{reached, waits, waitsLong, alone, aloneLong, deserted, unreachable, broken} {
		message := said(one, "[2001:db8:1234:5678:9abc:def0:1234:5678]:65535").Message
		if len(message) >= 200 || strings.Contains(message, "\n") {
			t.Errorf("%d characters: %s", len(message), message)
		}
	}
}

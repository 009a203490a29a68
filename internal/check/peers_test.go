package check_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/check"
)

const (
	itself = "here"   // the reporter of the node that the check runs on
	other  = "there"  // one of another node
	silent = "silent" // one that does not answer
	alien  = "alien"  // something that is not a reporter
	sick   = "sick"   // one that answers with an error
	lost   = "lost"   // one that sends elsewhere
	rude   = "rude"   // one that hangs up
)

// service answers as one of these after the other, and then as the last.
func service(t testing.TB, nodes ...string) string {
	t.Helper()
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

var (
	reached = healthy(check.ReasonPeerReached, "a reporter on another node answers over the network of pods")
	waits   = unhealthy(check.ReasonNoPeers, "waits up to 30s for a reporter of another node to be ready")
	alone   = healthy(check.ReasonNoPeers, "no other node has a reporter that is ready, so there is nobody to be reached")
)

func unreachable(address string) check.Observation {
	return failed(check.ReasonPeersUnreachable, "no reporter of another node answers at "+address+" within 300ms")
}

// clock is a time that goes on when it is told to.
type clock struct{ now time.Time }

func peers(t testing.TB, spec check.Peers, timeout time.Duration) (check.Check, *clock) {
	t.Helper()
	c := made(t, check.Spec{Peers: &spec}, check.Env{Node: itself, Timeout: timeout})
	at := &clock{time.Unix(1e9, 0)}
	check.SetClock(c, func() time.Time { return at.now })
	return c, at
}

func TestPeers(t *testing.T) {
	t.Parallel()
	answering := func(nodes ...string) func(testing.TB) string {
		return func(t testing.TB) string { t.Helper(); return service(t, nodes...) }
	}
	for name, test := range map[string]struct {
		address func(testing.TB) string
		// first is what is found at first, later what is found when patience is over. Absent: the same.
		first, later check.Observation
		silent       bool
	}{
		"another node answers":                           {address: answering(other), first: reached},
		"another node answers after this one":            {address: answering(itself, itself, itself, other), first: reached},
		"another node answers at the last try":           {address: answering(itself, itself, itself, itself, itself, itself, itself, other), first: reached},
		"a peer that is not ready does not hold it back": {address: answering(silent, other), first: reached},
		"nor does one that hangs up":                     {address: answering(rude, other), first: reached},
		"nor does something that is not a reporter":      {address: answering(alien, other), first: reached},
		"nor does one that has an error":                 {address: answering(sick, other), first: reached},
		"only this node answers":                         {address: answering(itself), first: waits, later: alone},
		"nobody is there":                                {address: refused, first: waits, later: alone},
		"nobody knows the name":                          {address: func(testing.TB) string { return "nobody.invalid:80" }, first: waits, later: alone},
		"this node, and nobody where another was": {
			address: func(t testing.TB) string {
				_, port, _ := net.SplitHostPort(service(t, itself))
				return "two.invalid:" + port
			},
			first: waits, later: alone,
		},
		"nobody answers":                         {address: answering(silent), silent: true},
		"packets are dropped":                    {address: blackhole, silent: true},
		"this node answers, and others do not":   {address: answering(itself, silent), silent: true},
		"others do not answer, and then itself":  {address: answering(silent, itself, itself, itself, itself, itself, itself, itself, silent, itself), silent: true},
		"what answers is not a reporter":         {address: answering(alien), silent: true},
		"what answers has an error":              {address: answering(sick), silent: true},
		"what answers sends elsewhere":           {address: answering(lost), silent: true},
		"what answers hangs up":                  {address: answering(rude), silent: true},
		"what answers does not speak HTTP":       {address: func(t testing.TB) string { return accept(t, greet("SSH-2.0-OpenSSH_9.9\r\n")) }, silent: true},
		"the name server fails":                  {address: func(testing.TB) string { return "broken.invalid:80" }, silent: true},
		"the name server does not answer either": {address: func(testing.TB) string { return "silent.invalid:80" }, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, timeout := test.address(t), 3*time.Second
			if test.silent {
				test.first, timeout = unreachable(address), brief
			}
			if test.later == (check.Observation{}) {
				test.later = test.first
			}
			c, at := peers(t, check.Peers{Address: address}, timeout)
			expect(t, ran(t, c, timeout), test.first)
			at.now = at.now.Add(30*time.Second - 1)
			if !test.silent {
				expect(t, ran(t, c, timeout), test.first)
			}
			at.now = at.now.Add(1)
			expect(t, ran(t, c, timeout), test.later)
		})
	}
}

func TestANameOfManyAddressesIsTriedAtAll(t *testing.T) {
	t.Parallel()
	// 127.0.0.1 is this node, 127.0.0.2 another: a dialer would only ever take the first.
	address := service(t, itself)
	_, port, _ := net.SplitHostPort(address)
	listener, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Skip("this system has no second address, or not this port of it:", err)
	}
	acceptOn(t, listener, say("HTTP/1.1 200 OK\r\n"+check.PeerNodeHeader+": there\r\nContent-Length: 0\r\n\r\n"))
	c, _ := peers(t, check.Peers{Address: "two.invalid:" + port}, long)
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

func TestPatience(t *testing.T) {
	t.Parallel()
	t.Run("is as long as the user says", func(t *testing.T) {
		t.Parallel()
		c, at := peers(t, check.Peers{Address: refused(t), Patience: check.For(5 * time.Minute)}, long)
		expect(t, ran(t, c, long), unhealthy(check.ReasonNoPeers, "waits up to 5m0s for a reporter of another node to be ready"))
		at.now = at.now.Add(5 * time.Minute)
		expect(t, ran(t, c, long), alone)
	})
	t.Run("of 0 is none", func(t *testing.T) {
		t.Parallel()
		c, _ := peers(t, check.Peers{Address: refused(t), Patience: check.For(0)}, long)
		expect(t, ran(t, c, long), alone)
	})
	t.Run("is not needed twice, even if the clock goes back", func(t *testing.T) {
		t.Parallel()
		c, at := peers(t, check.Peers{Address: refused(t)}, long)
		expect(t, ran(t, c, long), waits)
		at.now = at.now.Add(time.Minute)
		expect(t, ran(t, c, long), alone)
		at.now = at.now.Add(-time.Hour)
		expect(t, ran(t, c, long), alone)
	})
	for name, meanwhile := range map[string]string{
		"begins anew when a peer was reached meanwhile":        other,
		"begins anew when a peer was there and did not answer": sick,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := []string{itself, itself, itself, itself, itself, itself, itself, itself}
			nodes := append(append([]string{}, first...), meanwhile)
			if meanwhile == sick {
				nodes = append(nodes, first[1:]...)
			}
			c, at := peers(t, check.Peers{Address: service(t, append(nodes, itself)...)}, long)
			expect(t, ran(t, c, long), waits)
			at.now = at.now.Add(time.Minute)
			if got := ran(t, c, long); got == alone || got == waits {
				t.Errorf("got %+v", got)
			}
			expect(t, ran(t, c, long), waits)
			at.now = at.now.Add(time.Minute)
			expect(t, ran(t, c, long), alone)
		})
	}
}

func TestAServiceIsFoundByItsVariables(t *testing.T) {
	t.Parallel()
	host, port, _ := net.SplitHostPort(service(t, other))
	env := check.Env{Node: itself, Timeout: long, Variable: func(name string) string {
		return map[string]string{
			"NETWORK_REPORTER_SERVICE_HOST": host, "NETWORK_REPORTER_SERVICE_PORT": port,
			"ODD_SERVICE_HOST": host, "ODD_SERVICE_PORT": "tcp://10.0.0.1:80",
			"HALF_SERVICE_PORT": port,
		}[name]
	}}
	expect(t, ran(t, made(t, check.Spec{Peers: &check.Peers{Service: "network-reporter"}}, env), long), reached)

	for name, want := range map[string]string{
		"other-one": `peers.service is "other-one", and the variables OTHER_ONE_SERVICE_HOST and OTHER_ONE_SERVICE_PORT are not set: create the Service, with a cluster IP and in the namespace of this pod, before the pod; or set address to host:port`,
		"odd":       `peers.service is "odd", and the variables ODD_SERVICE_HOST and ODD_SERVICE_PORT are not set: create the Service, with a cluster IP and in the namespace of this pod, before the pod; or set address to host:port`,
		"half":      `peers.service is "half", and the variables HALF_SERVICE_HOST and HALF_SERVICE_PORT are not set: create the Service, with a cluster IP and in the namespace of this pod, before the pod; or set address to host:port`,
	} {
		if _, err := check.New(check.Spec{Peers: &check.Peers{Service: name}}, env); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", name, err, want)
		}
	}
}

// What the load balancers of this world say when a Service has nobody behind it cannot all be
// had here.
func TestNobodyIsToldFromSilence(t *testing.T) {
	t.Parallel()
	dialing := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	for name, test := range map[string]struct {
		err    error
		nobody bool
	}{
		"refused":               {dialing(syscall.ECONNREFUSED), true},
		"not permitted":         {dialing(syscall.EPERM), true},
		"an unknown name":       {&net.DNSError{Name: "x", IsNotFound: true}, true},
		"a name server failing": {&net.DNSError{Name: "x"}, false},
		"no route to the host":  {dialing(syscall.EHOSTUNREACH), false},
		"reset":                 {dialing(syscall.ECONNRESET), false},
		"anything else":         {errors.New("else"), false},
	} {
		if got := check.IsNobody(test.err); got != test.nobody {
			t.Errorf("%s: nobody is %v", name, got)
		}
	}
}

func TestTheWordsOfPeersAreShort(t *testing.T) {
	t.Parallel()
	for _, one := range []check.Observation{reached, waits, alone, unreachable("[2001:db8:1234:5678:9abc:def0:1234:5678]:65535")} {
		if len(one.Message) >= 200 || strings.Contains(one.Message, "\n") {
			t.Errorf("%d characters: %s", len(one.Message), one.Message)
		}
	}
}

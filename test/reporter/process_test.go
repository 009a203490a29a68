package reporter_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/internal/testenv"
)

const networkReady = "example.com/NetworkReady"

// endpoint is a component's health endpoint, whose response a test sets.
type endpoint struct {
	*httptest.Server
	code atomic.Int32
	hits atomic.Int32
}

func newEndpoint(t testing.TB, code int) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.answer(code)
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		e.hits.Add(1)
		w.WriteHeader(int(e.code.Load()))
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) answer(code int) { e.code.Store(int32(code)) }

// station is a node with an account for its reporter.
type station struct {
	*testenv.Cluster
	node, namespace, account string
	pod                      *corev1.Pod
	kubeconfig, tokenFile    string
}

// newStation grants the account what the guide grants it.
func newStation(t testing.TB, c *testenv.Cluster) *station {
	t.Helper()
	return newStationNamed(t, c, nameOf(t))
}

func newStationNamed(t testing.TB, c *testenv.Cluster, id string) *station {
	t.Helper()
	s := newPowerlessStation(t, c, id)
	grant(t, c, guideRole(t, c, s.node), userOf(s.namespace, s.account))
	return s
}

// newPowerlessStation returns a station whose account has no permissions.
func newPowerlessStation(t testing.TB, c *testenv.Cluster, id string) *station {
	t.Helper()
	s := &station{Cluster: c, node: id, namespace: id, account: "cni-reporter"}
	c.Create(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: id}})
	c.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: id}})
	newAccount(t, c, s.namespace, s.account)
	s.pod = c.Pod(t, s.namespace, s.account, s.node)
	s.kubeconfig, s.tokenFile = c.TokenKubeconfig(t, c.Token(t, s.namespace, s.account, s.pod))
	return s
}

// start starts the reporter as the DaemonSet guide has it: without NODE_NAME.
func (s *station) start(t testing.TB, e *endpoint, env ...string) *testenv.Process {
	t.Helper()
	return testenv.StartReporter(t, s.kubeconfig, append([]string{"CONDITION_TYPE=" + networkReady, "CHECK_ENDPOINT=" + e.URL}, env...))
}

// condition returns the condition of the node; nil if it has none.
func (s *station) condition(ctx context.Context, conditionType string) (*corev1.NodeCondition, error) {
	var node corev1.Node
	if err := s.Client.Get(ctx, types.NamespacedName{Name: s.node}, &node); err != nil {
		return nil, err
	}
	return conditionOf(&node, conditionType), nil
}

// eventually waits until the condition passes the check, and returns it.
func (s *station) eventually(t testing.TB, conditionType, what string, check func(*corev1.NodeCondition) bool) *corev1.NodeCondition {
	t.Helper()
	var found *corev1.NodeCondition
	testenv.Eventually(t, conditionType+": "+what, func(ctx context.Context) (err error) {
		if found, err = s.condition(ctx, conditionType); err == nil && (found == nil || !check(found)) {
			err = fmt.Errorf("the condition is %+v", found)
		}
		return err
	})
	return found
}

func is(status corev1.ConditionStatus) func(*corev1.NodeCondition) bool {
	return func(c *corev1.NodeCondition) bool { return c.Status == status }
}

func TestAReporterReportsItsCheck(t *testing.T) {
	t.Parallel()
	s, e := newStation(t, cluster(t)), newEndpoint(t, http.StatusServiceUnavailable)
	p := s.start(t, e, "CHECK_INTERVAL=100ms", "NODE_NAME="+s.node)
	down := s.eventually(t, networkReady, "False", is(corev1.ConditionFalse))
	if down.Reason != "EndpointNotReady" || down.Message != e.URL+" returned 503" {
		t.Errorf("the condition is %s: %s", down.Reason, down.Message)
	}
	e.answer(http.StatusOK)
	up := s.eventually(t, networkReady, "True", is(corev1.ConditionTrue))
	if up.Reason != "EndpointOK" || up.LastTransitionTime.Before(&down.LastTransitionTime) {
		t.Errorf("the condition is %+v", up)
	}
	if code := p.Terminate(); code != 0 {
		t.Errorf("it ends with %d", code)
	}
	if left, err := s.condition(t.Context(), networkReady); err != nil || left.Status != corev1.ConditionTrue {
		t.Errorf("it leaves %+v, %v", left, err)
	}
}

// A change is written immediately; unchanged conditions are written again at every heartbeat.
func TestHeartbeatsGoOnAndTransitionsStay(t *testing.T) {
	t.Parallel()
	s, e := newStation(t, cluster(t)), newEndpoint(t, http.StatusOK)
	p := s.start(t, e, "HEARTBEAT_PERIOD=1s")
	first := s.eventually(t, networkReady, "True", is(corev1.ConditionTrue))
	later := func(c *corev1.NodeCondition) bool {
		return c.LastHeartbeatTime.Sub(first.LastHeartbeatTime.Time) >= 2*time.Second
	}
	beat := s.eventually(t, networkReady, "a heartbeat", later)
	if !beat.LastTransitionTime.Equal(&first.LastTransitionTime) {
		t.Errorf("the transition moved from %v to %v", first.LastTransitionTime, beat.LastTransitionTime)
	}
	// Also after a restart, at which the reporter reads its last condition with an empty PATCH.
	p.Kill()
	s.start(t, e, "HEARTBEAT_PERIOD=1s")
	first = beat
	beat = s.eventually(t, networkReady, "a heartbeat after a restart", later)
	if !beat.LastTransitionTime.Equal(&first.LastTransitionTime) {
		t.Errorf("over a restart the transition moved from %v to %v", first.LastTransitionTime, beat.LastTransitionTime)
	}
}

// The restart of a component, and of the reporter meanwhile, does not flip a ready node.
func TestAShortFailureDoesNotFlipAReadyNode(t *testing.T) {
	t.Parallel()
	s, e := newStation(t, cluster(t)), newEndpoint(t, http.StatusOK)
	p := s.start(t, e, "CHECK_INTERVAL=100ms")
	up := s.eventually(t, networkReady, "True", is(corev1.ConditionTrue))
	e.answer(http.StatusServiceUnavailable)
	asked := e.hits.Load()
	testenv.Eventually(t, "three failures", func(context.Context) error {
		if n := e.hits.Load() - asked; n < 4 {
			return fmt.Errorf("%d so far", n)
		}
		return nil
	})
	p.Kill()
	s.start(t, e, "CHECK_INTERVAL=100ms")
	asked = e.hits.Load()
	testenv.Eventually(t, "failures after the restart", func(context.Context) error {
		if n := e.hits.Load() - asked; n < 8 {
			return fmt.Errorf("%d so far", n)
		}
		return nil
	})
	if log := p.Log(); !strings.Contains(log, "Check failed; the condition stays True") {
		t.Errorf("the failure is not logged: %s", log)
	}
	if now, err := s.condition(t.Context(), networkReady); err != nil || now.Status != corev1.ConditionTrue || !now.LastTransitionTime.Equal(&up.LastTransitionTime) {
		t.Errorf("after a short failure: %+v, %v", now, err)
	}
	// One that goes on does.
	down := s.eventually(t, networkReady, "False", is(corev1.ConditionFalse))
	if !down.LastTransitionTime.After(up.LastTransitionTime.Time) {
		t.Errorf("the transition is %v, before it was %v", down.LastTransitionTime, up.LastTransitionTime)
	}
}

func TestSignalStartsACheckAtOnce(t *testing.T) {
	t.Parallel()
	s, e := newStation(t, cluster(t)), newEndpoint(t, http.StatusOK)
	p := s.start(t, e, "CHECK_INTERVAL=1h")
	s.eventually(t, networkReady, "True", is(corev1.ConditionTrue))
	asked := e.hits.Load()
	p.Signal(hangup)
	testenv.Eventually(t, "a check", func(context.Context) error {
		if e.hits.Load() == asked {
			return fmt.Errorf("asked %d times, as before", asked)
		}
		return nil
	})
}

func TestConfigurationFileIsReloaded(t *testing.T) {
	t.Parallel()
	s, e := newStation(t, cluster(t)), newEndpoint(t, http.StatusOK)
	file := filepath.Join(t.TempDir(), "config.yaml")
	write := func(checks string) {
		t.Helper()
		text := "apiVersion: readygate.dev/v1alpha1\nkind: ReporterConfig\nchecks:\n" + checks
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil { // as a mounted ConfigMap changes
			t.Fatal(err)
		}
	}
	one := fmt.Sprintf("- {conditionType: example.com/One, http: {url: %q}}\n", e.URL)
	write(one)
	p := testenv.StartReporter(t, s.kubeconfig, nil, "--config", file)
	s.eventually(t, "example.com/One", "True", is(corev1.ConditionTrue))

	write(one + fmt.Sprintf("- {conditionType: example.com/Two, interval: 1, http: {url: %q}}\n", e.URL))
	p.Signal(hangup)
	testenv.Eventually(t, "a complaint", func(context.Context) error {
		if !strings.Contains(p.Log(), `checks[1].interval is 1, must be a duration in`) {
			return fmt.Errorf("the log is %s", p.Log())
		}
		return nil
	})
	wantMetric(t, p, "node_readiness_reporter_config_valid 0")
	asked, complaints := e.hits.Load(), strings.Count(p.Log(), "Invalid configuration file")
	p.Signal(hangup)
	testenv.Eventually(t, "the error again after SIGHUP", func(context.Context) error {
		if n := strings.Count(p.Log(), "Invalid configuration file"); n != complaints+1 {
			return fmt.Errorf("complained %d times", n)
		}
		return nil
	})
	testenv.Eventually(t, "the old configuration to be in force", func(context.Context) error {
		if e.hits.Load() == asked {
			return fmt.Errorf("asked %d times", asked)
		}
		return nil
	})

	write(one + "- {conditionType: example.com/Two, file: {path: /nonexistent}}\n")
	s.eventually(t, "example.com/Two", "False", is(corev1.ConditionFalse))
	wantMetric(t, p, "node_readiness_reporter_config_valid 1")
	write(strings.Replace(one, "One", "Three", 1))
	s.eventually(t, "example.com/Three", "True", is(corev1.ConditionTrue))
	// A period that becomes shorter holds from now on, not from the end of the old one.
	three := s.eventually(t, "example.com/Three", "True", is(corev1.ConditionTrue))
	write(strings.Replace(one, "One", "Three", 1) + "heartbeatPeriod: 1s\n")
	s.eventually(t, "example.com/Three", "a heartbeat", func(c *corev1.NodeCondition) bool { return c.LastHeartbeatTime.After(three.LastHeartbeatTime.Time) })
	if one, err := s.condition(t.Context(), "example.com/One"); err != nil || one.Status != corev1.ConditionTrue {
		t.Errorf("a condition that is no longer checked is %+v, %v", one, err)
	}
}

// wantMetric waits until the reporter shows this line.
func wantMetric(t *testing.T, p *testenv.Process, line string) {
	t.Helper()
	testenv.Eventually(t, line, func(ctx context.Context) error {
		_, text, err := testenv.Get(ctx, "http://"+p.Metrics+"/metrics")
		if err == nil && !strings.Contains(text, "\n"+line+"\n") {
			err = fmt.Errorf("it shows\n%s", text)
		}
		return err
	})
}

func TestATakenPortIsReportedAndNothingElseStops(t *testing.T) {
	t.Parallel()
	s, e := newStation(t, cluster(t)), newEndpoint(t, http.StatusOK)
	p := s.start(t, e, "METRICS_BIND_ADDRESS="+strings.TrimPrefix(e.URL, "http://"))
	s.eventually(t, networkReady, "True", is(corev1.ConditionTrue))
	testenv.Eventually(t, "an error about the port", func(context.Context) error {
		if log := p.Log(); !strings.Contains(log, "address already in use") || !strings.Contains(log, "METRICS_BIND_ADDRESS") {
			return fmt.Errorf("the log is %s", log)
		}
		return nil
	})
}

// Clients of the metrics port cannot make the reporter use up the node's memory.
func TestConnectionsToTheReporterAreLimited(t *testing.T) {
	t.Parallel()
	s, e := newStation(t, cluster(t)), newEndpoint(t, http.StatusOK)
	p := s.start(t, e)
	s.eventually(t, networkReady, "True", is(corev1.ConditionTrue))
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("connections of a process are counted in /proc")
	}
	for range 400 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.Metrics)
		if err != nil {
			break // the system's own queue is full: as good
		}
		defer conn.Close() //nolint:errcheck // of no interest
		_, _ = io.WriteString(conn, "GET /metrics HTTP/1.1\r\nX-Padding: "+strings.Repeat("x", 2000))
	}
	most := 0
	for range 20 { // it takes them up one after the other
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.Pid()))
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, len(open))
		time.Sleep(50 * time.Millisecond)
	}
	if most < 50 || most > 100 {
		t.Errorf("it has %d files open", most)
	}
	testenv.Eventually(t, "an answer for others", func(ctx context.Context) error {
		_, _, err := testenv.Get(ctx, "http://"+p.Health+"/healthz")
		return err
	})
}

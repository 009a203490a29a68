package reporter_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/testenv"
)

const podNetworkReady = "example.com/PodNetworkReady"

// outpost is a node with a reporter on the pod network.
type outpost struct {
	*station
	*testenv.Process
	config, pod string
}

// outpost adds a node to the network. It does not start the reporter.
func (n *network) outpost(c *testenv.Cluster, node string, holdDown time.Duration) *outpost {
	n.t.Helper()
	pod, ready, everyone := n.join(node)
	o := &outpost{station: newStationNamed(n.t, c, nameOf(n.t)+"-"+node), pod: pod, config: filepath.Join(n.t.TempDir(), "config.yaml")}
	config := fmt.Sprintf(`apiVersion: readygate.dev/v1alpha1
kind: ReporterConfig
checks:
- conditionType: %s
  interval: 200ms
  timeout: 1s
  failureThreshold: 2
  holdDown: %v
  peers: {ready: %q, everyone: %q, patience: 1s}
`, podNetworkReady, holdDown, ready, everyone)
	if err := os.WriteFile(o.config, []byte(config), 0o600); err != nil {
		n.t.Fatal(err)
	}
	return o
}

func (o *outpost) start(t *testing.T) *outpost {
	t.Helper()
	o.Process = testenv.StartReporter(t, o.kubeconfig, []string{"METRICS_BIND_ADDRESS=" + o.pod}, "--config", o.config)
	return o
}

// becomes waits for a status and a reason. Only a change of the status is written
// immediately.
func (o *outpost) becomes(t *testing.T, status corev1.ConditionStatus, reason string) {
	t.Helper()
	o.eventually(t, podNetworkReady, string(status)+", "+reason, func(c *corev1.NodeCondition) bool {
		return c.Status == status && c.Reason == reason
	})
}

var turned = regexp.MustCompile(`(?m)^time=(\S+) .*msg="Condition changed" .*status=(\S+)$`)

// turns returns the statuses of the node in order.
func (o *outpost) turns() []string {
	var all []string
	for _, one := range turned.FindAllStringSubmatch(o.Log(), -1) {
		all = append(all, one[2])
	}
	return all
}

// turnedAt returns when the node first had a status.
func (o *outpost) turnedAt(t *testing.T, status string) time.Time {
	t.Helper()
	for _, one := range turned.FindAllStringSubmatch(o.Log(), -1) {
		if one[2] == status {
			at, err := time.Parse(time.RFC3339, one[1])
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
	}
	t.Fatalf("%s was never %s:\n%s", o.node, status, o.Log())
	return time.Time{}
}

var counted = regexp.MustCompile(`(?m)^node_readiness_reporter_check_duration_seconds_count (\d+)$`)

// checks returns the number of checks of the reporter.
func (o *outpost) checks(ctx context.Context) (int, error) {
	_, text, err := testenv.Get(ctx, "http://"+o.pod+"/metrics")
	if err != nil {
		return 0, err
	}
	found := counted.FindStringSubmatch(text)
	if found == nil {
		return 0, errors.New("no count of checks among the metrics")
	}
	return strconv.Atoi(found[1])
}

// checked waits for this number of further checks.
func (o *outpost) checked(t *testing.T, times int) {
	t.Helper()
	begin := -1
	testenv.Eventually(t, fmt.Sprintf("%d checks of %s", times, o.node), func(ctx context.Context) error {
		now, err := o.checks(ctx)
		switch {
		case err != nil:
			return err
		case begin < 0:
			begin = now
		}
		if now-begin < times {
			return fmt.Errorf("%d so far", now-begin)
		}
		return nil
	})
}

// says waits for a text in the log.
func (o *outpost) says(t *testing.T, text string) {
	t.Helper()
	testenv.Eventually(t, o.node+" to say: "+text, func(context.Context) error {
		if !strings.Contains(o.Log(), text) {
			return errors.New("it does not")
		}
		return nil
	})
}

// A node whose network is cut becomes False, and the other nodes stay True.
func TestReportersReachEachOther(t *testing.T) {
	t.Parallel()
	c, n := cluster(t), newNetwork(t)
	a := n.outpost(c, "a", time.Second).start(t)
	a.becomes(t, corev1.ConditionTrue, "NoPeers") // though it is alone
	if first, last := a.turnedAt(t, "False"), a.turnedAt(t, "True"); last.Sub(first) < 900*time.Millisecond {
		t.Errorf("it waited from %v to %v for others", first, last)
	}
	b, third := n.outpost(c, "b", time.Second).start(t), n.outpost(c, "c", time.Second).start(t)
	for _, o := range []*outpost{b, third} {
		o.becomes(t, corev1.ConditionTrue, "PeerReached")
	}

	n.setCut(true, "b")
	b.becomes(t, corev1.ConditionFalse, "PeersUnreachable")
	for _, o := range []*outpost{a, b, third} {
		o.checked(t, 5)
	}
	n.setCut(false, "b")
	b.becomes(t, corev1.ConditionTrue, "PeerReached")
	for _, o := range []*outpost{a, third} {
		if turns := o.turns(); slices.Index(turns, "True") != len(turns)-1 {
			t.Errorf("%s, which was not cut off, was held back: %v", o.node, turns)
		}
	}
	if turns := b.turns(); !slices.Equal(turns[max(0, len(turns)-3):], []string{"True", "False", "True"}) {
		t.Errorf("%s, which was cut off, was in turn %v", b.node, turns)
	}
}

// If the whole network is cut, the nodes become False one after the other, until no node is
// ready. They do not become True because no peer is ready: only a response makes them True.
func TestReportersStayFalseWhileTheWholeNetworkIsCut(t *testing.T) {
	t.Parallel()
	c, n := cluster(t), newNetwork(t)
	names := []string{"a", "b", "c", "d"}
	var all []*outpost
	for _, name := range names {
		all = append(all, n.outpost(c, name, 2*time.Second))
	}
	for _, o := range all {
		o.start(t)
	}
	for _, o := range all {
		o.becomes(t, corev1.ConditionTrue, "PeerReached")
	}

	n.setCut(true, names...)
	cutOff := func() (nodes []*outpost) {
		for _, o := range all {
			if turns := o.turns(); turns[len(turns)-1] == "False" {
				nodes = append(nodes, o)
			}
		}
		return nodes
	}
	testenv.Eventually(t, "all nodes but one, at most, to be False", func(context.Context) error {
		if found := cutOff(); len(found) < len(all)-1 {
			return fmt.Errorf("%d are", len(found))
		}
		return nil
	})
	for _, o := range all {
		o.checked(t, 5) // each takes a second without a response, so this is more than the hold-down
	}
	found := cutOff()
	if len(found) < len(all)-1 {
		t.Errorf("only %d nodes are still False", len(found))
	}
	for _, o := range found {
		o.becomes(t, corev1.ConditionFalse, "PeersUnreachable")
	}

	n.setCut(false, names...)
	for _, o := range found {
		o.becomes(t, corev1.ConditionTrue, "PeerReached")
	}
	for _, o := range all {
		o.eventually(t, podNetworkReady, "True", is(corev1.ConditionTrue))
		turns := o.turns()
		turns = turns[slices.Index(turns, "True"):]
		if want := []string{"True", "False", "True"}; !slices.Equal(turns, want) && (slices.Contains(found, o) || len(turns) > 1) {
			t.Errorf("%s was in turn %v", o.node, turns)
		}
	}
}

// Nodes without any response count as the only node after a long wait, not soon: that no peer is
// ready does not make a node healthy while unready peers exist.
func TestReportersWaitLongOnANetworkThatIsCutFromTheStart(t *testing.T) {
	t.Parallel()
	c, n := cluster(t), newNetwork(t)
	names := []string{"a", "b", "c"}
	n.setCut(true, names...)
	var all []*outpost
	for _, name := range names {
		all = append(all, n.outpost(c, name, time.Minute))
	}
	for _, o := range all {
		o.start(t)
	}
	for _, o := range all {
		o.becomes(t, corev1.ConditionTrue, "NoPeers")
		if first, last := o.turnedAt(t, "False"), o.turnedAt(t, "True"); last.Sub(first) < 9900*time.Millisecond {
			t.Errorf("%s waited for %v", o.node, last.Sub(first))
		}
	}
}

// With two nodes, a node that is switched off does not respond at first, and then leaves the Service.
func TestReportersAreNotHeldBackByANodeThatIsSwitchedOff(t *testing.T) {
	t.Parallel()
	c, n := cluster(t), newNetwork(t)
	a, b := n.outpost(c, "a", 10*time.Second).start(t), n.outpost(c, "b", 10*time.Second).start(t)
	for _, o := range []*outpost{a, b} {
		o.eventually(t, podNetworkReady, "True", is(corev1.ConditionTrue))
		o.checked(t, 5) // so that they have met
	}
	n.setCut(true, "b")
	a.says(t, "Check failed; the condition stays True")
	a.checked(t, 2) // a while, but not as long as the hold-down
	b.Kill()
	n.leave("b")
	a.says(t, "Check recovered before the condition became False")
	a.checked(t, 5)
	if turns := a.turns(); slices.Index(turns, "True") != len(turns)-1 {
		t.Errorf("it was in turn %v", turns)
	}
	now, err := a.condition(t.Context(), podNetworkReady)
	if err != nil || now.Status != corev1.ConditionTrue {
		t.Errorf("it is %+v, %v", now, err)
	}
}

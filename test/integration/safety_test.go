package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

func TestMinReadySecondsSurvivesARestart(t *testing.T) {
	t.Parallel()
	const wait = 6 * time.Second
	c := testenv.StartCluster(t)
	rule := testenv.Rule(testenv.NameOf(t), func(r *v1alpha1.NodeReadinessRule) { r.Spec.MinReadySeconds = int32(wait / time.Second) })
	c.Create(t, rule)
	c.Create(t, testenv.Node(rule.Name, testenv.Pool(rule.Name)))
	manager := c.StartProcess(t, testenv.ManagerUser)
	c.EventuallyNode(t, rule.Name, "held", held(rule))

	key := v1alpha1.HoldPrefix + string(rule.UID)
	var mu sync.Mutex
	since := map[string]bool{}
	watchAll(t, replica(t, c), &corev1.NodeList{}, func(event watch.Event) {
		if node, ok := event.Object.(*corev1.Node); ok {
			var record struct{ Met string }
			_ = json.Unmarshal([]byte(node.Annotations[key]), &record)
			mu.Lock()
			defer mu.Unlock()
			if record.Met != "" {
				since[record.Met] = true
			}
		}
	})
	met := time.Now()
	c.SetCondition(t, rule.Name, testenv.Condition, corev1.ConditionTrue)
	c.EventuallyNode(t, rule.Name, "recorded as met", func(n *corev1.Node) bool { return strings.Contains(n.Annotations[key], `"met"`) })
	manager.Kill()
	time.Sleep(1100 * time.Millisecond) // a restarted wait would record another time, in whole seconds
	c.StartProcess(t, testenv.ManagerUser)
	c.EventuallyNode(t, rule.Name, "released", free(rule))
	if took := time.Since(met); took < wait {
		t.Errorf("released after %v, must be no earlier than %v", took, wait)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(since) != 1 {
		t.Errorf("recorded start times: %v, want one: a restart of the manager must not restart the wait", slices.Collect(maps.Keys(since)))
	}
}

func TestAStaleConditionHoldsANodeOnTime(t *testing.T) {
	t.Parallel()
	const silence = time.Minute
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id, func(r *v1alpha1.NodeReadinessRule) { r.Spec.Conditions[0].MaxAge = &metav1.Duration{Duration: silence} })
	c.Create(t, rule)
	c.Create(t, testenv.Node(id, testenv.Pool(id)))
	c.EventuallyNode(t, id, "held", held(rule))
	written := time.Now().Truncate(time.Second) // heartbeats have whole seconds, and a write takes its time
	c.SetCondition(t, id, testenv.Condition, corev1.ConditionTrue)
	c.EventuallyNode(t, id, "released", free(rule))
	c.EventuallyNode(t, id, "held again without a write", held(rule))
	if took := time.Since(written); took < silence {
		t.Errorf("held after %v, must be no earlier than %v", took, silence)
	}
	c.SetCondition(t, id, testenv.Condition, corev1.ConditionTrue)
	c.EventuallyNode(t, id, "released after the next heartbeat", free(rule))
}

// awayWatcher counts the nodes with the rule's taint, at every revision.
type awayWatcher struct {
	mu   sync.Mutex
	held map[string]bool
	most int
	all  int
}

func watchAway(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule, count func(string) bool) *awayWatcher {
	t.Helper()
	w := &awayWatcher{held: map[string]bool{}}
	watchAll(t, replica(t, c), &corev1.NodeList{}, func(event watch.Event) {
		node, ok := event.Object.(*corev1.Node)
		if !ok || !count(node.Name) {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if testenv.HasTaint(node, rule.Spec.Taint.Key) {
			if !w.held[node.Name] {
				w.all++
			}
			w.held[node.Name] = true
		} else {
			delete(w.held, node.Name)
		}
		w.most = max(w.most, len(w.held))
	})
	return w
}

func (w *awayWatcher) now() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := make([]string, 0, len(w.held))
	for name := range w.held {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// taken returns how often nodes were held so far.
func (w *awayWatcher) taken() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all
}

func (w *awayWatcher) mostEver() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}

// If a reporter wrongly reports all ten nodes as not ready, at most three are held, also while nodes recover, the
// manager restarts, or nodes join.
func TestABadProbeDoesNotDrainTheFleet(t *testing.T) {
	t.Parallel()
	const fleet, limit = 10, 3
	c := testenv.StartCluster(t)
	name := testenv.NameOf(t)
	node := func(i int) string { return fmt.Sprintf("%s-%02d", name, i) }
	for i := range fleet {
		c.CreateNode(t, testenv.Node(node(i), testenv.Pool(name)), corev1.ConditionFalse)
	}
	time.Sleep(1100 * time.Millisecond) // creation times have whole seconds, and the nodes must be older
	rule := testenv.Rule(name, func(r *v1alpha1.NodeReadinessRule) {
		r.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(limit))
		r.Spec.Taint.Effect = corev1.TaintEffectNoExecute
	})
	c.Create(t, rule)
	away := watchAway(t, c, rule, func(n string) bool { return strings.HasPrefix(n, name+"-") })
	manager := c.StartProcess(t, testenv.ManagerUser)

	limited := func(n int32) func(*v1alpha1.NodeReadinessRule) bool {
		return func(r *v1alpha1.NodeReadinessRule) bool {
			return testenv.Is(v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonLimited)(r) &&
				r.Status.Summary != nil && r.Status.Summary.Held == limit && r.Status.Summary.Limited == n
		}
	}
	c.EventuallyRule(t, name, "limited", limited(fleet-limit))
	if names := away.now(); !slices.Equal(names, []string{node(0), node(1), node(2)}) {
		t.Errorf("held nodes are %v, want the first three by name", names)
	}
	testenv.Eventually(t, "the event "+v1alpha1.EventLimited, func(context.Context) error {
		if !slices.ContainsFunc(c.Events(t, rule), func(e eventsv1.Event) bool { return e.Reason == v1alpha1.EventLimited }) {
			return errors.New("none yet")
		}
		return nil
	})

	// One node recovers, and the next one is held.
	c.SetCondition(t, node(1), testenv.Condition, corev1.ConditionTrue)
	c.EventuallyNode(t, node(3), "held", held(rule))
	c.EventuallyRule(t, name, "limited", limited(fleet-limit-1))

	// The manager is killed while nodes recover and fail.
	for round := range 6 {
		c.SetCondition(t, node(round), testenv.Condition, corev1.ConditionTrue)
		manager.Kill()
		manager = c.StartProcess(t, testenv.ManagerUser)
		c.SetCondition(t, node((round+5)%fleet), testenv.Condition, corev1.ConditionFalse)
		testenv.Eventually(t, "as many held nodes as maxUnavailable allows", func(context.Context) error {
			if names := away.now(); len(names) != limit {
				return fmt.Errorf("held nodes are %v", names)
			}
			return nil
		})
	}
	if most := away.mostEver(); most > limit {
		t.Errorf("%d nodes in use were held at the same time, maxUnavailable is %d", most, limit)
	}

	// A new node does not count against maxUnavailable.
	newcomer := testenv.Node("new-"+name, testenv.Pool(name))
	c.Create(t, newcomer)
	c.EventuallyNode(t, newcomer.Name, "held in addition", held(rule))

	// All recover.
	for i := range fleet {
		c.SetCondition(t, node(i), testenv.Condition, corev1.ConditionTrue)
	}
	c.SetCondition(t, newcomer.Name, testenv.Condition, corev1.ConditionTrue)
	c.EventuallyRule(t, name, "enforced", testenv.Enforced)
}

func TestARebootHoldsANode(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id, testenv.BootstrapOnly, func(r *v1alpha1.NodeReadinessRule) { r.Spec.BootstrapScope = v1alpha1.BootstrapScopeBoot })
	c.Create(t, rule)
	c.Create(t, testenv.Node(id, testenv.Pool(id)))
	boot := func(boot string, ready corev1.ConditionStatus) {
		t.Helper()
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: id}}
		base := node.DeepCopy()
		now := metav1.Now()
		node.Status.NodeInfo.BootID = boot
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: now, LastTransitionTime: now}}
		if err := c.Client.Status().Patch(t.Context(), node, client.StrategicMergeFrom(base)); err != nil {
			t.Fatal(err)
		}
	}
	boot("a", corev1.ConditionTrue)
	c.EventuallyNode(t, id, "held", held(rule))
	c.SetCondition(t, id, testenv.Condition, corev1.ConditionTrue)
	c.EventuallyNode(t, id, "released", free(rule))

	boot("a", corev1.ConditionUnknown)
	c.EventuallyNode(t, id, "held while it is not Ready", held(rule))
	boot("a", corev1.ConditionTrue)
	c.EventuallyNode(t, id, "released, because the boot ID is unchanged", free(rule))

	time.Sleep(1100 * time.Millisecond) // heartbeats have whole seconds
	boot("b", corev1.ConditionTrue)
	c.EventuallyNode(t, id, "held although the condition is True", held(rule))
	time.Sleep(1100 * time.Millisecond)
	c.SetCondition(t, id, testenv.Condition, corev1.ConditionTrue)
	c.EventuallyNode(t, id, "released", free(rule))
}

func TestAStuckNodeHasOneEvent(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	rule := testenv.Rule(testenv.NameOf(t), func(r *v1alpha1.NodeReadinessRule) { r.Spec.ProgressDeadlineSeconds = ptr.To[int32](2) })
	c.Create(t, rule)
	node := testenv.Node(rule.Name, testenv.Pool(rule.Name))
	c.Create(t, node)
	manager := c.StartProcess(t, testenv.ManagerUser)
	stuck := func(n int32) func(*v1alpha1.NodeReadinessRule) bool {
		return func(r *v1alpha1.NodeReadinessRule) bool {
			return r.Status.Summary != nil && r.Status.Summary.Stuck == n
		}
	}
	c.EventuallyRule(t, rule.Name, "one node stuck", stuck(1))
	events := func() (notes []string) {
		for _, e := range c.Events(t, node) {
			if e.Reason == v1alpha1.EventStuck {
				notes = append(notes, e.Note)
			}
		}
		return notes
	}
	testenv.Eventually(t, "an event", func(context.Context) error {
		if len(events()) == 0 {
			return errors.New("none yet")
		}
		return nil
	})
	manager.Kill()
	c.StartProcess(t, testenv.ManagerUser)
	c.Patch(t, node, func() { node.Labels["wake"] = "up" })
	c.SetCondition(t, node.Name, testenv.Condition, corev1.ConditionFalse)
	c.SetCondition(t, node.Name, testenv.Condition, corev1.ConditionTrue)
	c.EventuallyRule(t, rule.Name, "no node stuck", stuck(0))
	if notes := events(); len(notes) != 1 || !strings.Contains(notes[0], testenv.Condition) {
		t.Errorf("events %q, want one that names the unmet condition", notes)
	}
}

func TestADeadlineReleasesANode(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id, func(r *v1alpha1.NodeReadinessRule) {
		r.Spec.ProgressDeadlineSeconds, r.Spec.OnDeadline = ptr.To[int32](2), v1alpha1.DeadlineRelease
	})
	c.Create(t, rule)
	node := testenv.Node(id, testenv.Pool(id))
	c.Create(t, node)
	c.EventuallyNode(t, id, "held", held(rule))
	c.EventuallyNode(t, id, "released by the deadline", free(rule))
	testenv.Eventually(t, "an event", func(context.Context) error {
		if !slices.ContainsFunc(c.Events(t, node), func(e eventsv1.Event) bool { return e.Reason == v1alpha1.EventDeadlineReleased }) {
			return errors.New("none yet")
		}
		return nil
	})
	c.SetCondition(t, id, testenv.Condition, corev1.ConditionTrue)
	c.EventuallyNode(t, id, "without the record of the deadline", func(n *corev1.Node) bool { return n.Annotations[v1alpha1.MemoryPrefix+string(rule.UID)] == "" })
	c.SetCondition(t, id, testenv.Condition, corev1.ConditionFalse)
	c.EventuallyNode(t, id, "held again", held(rule))
}

func TestRulesThatDependOnEachOther(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	first := testenv.Rule(id+"-first", func(r *v1alpha1.NodeReadinessRule) { r.Spec.DependsOn = []string{id + "-second"} })
	c.Create(t, first)
	c.EventuallyRule(t, first.Name, "accepted: no rule has the name", testenv.Is(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted))
	time.Sleep(1100 * time.Millisecond) // creation times have whole seconds
	second := testenv.Rule(id+"-second", func(r *v1alpha1.NodeReadinessRule) { r.Spec.DependsOn = []string{id + "-first"} })
	c.Create(t, second)
	c.EventuallyRule(t, second.Name, "not ordered, because of the cycle", testenv.Is(v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonUnordered))
	c.Create(t, testenv.Node(id, testenv.Pool(second.Name)))
	c.EventuallyNode(t, id, "held despite the cycle", held(second))
	c.Patch(t, second, func() { second.Spec.DependsOn = nil })
	c.EventuallyRule(t, second.Name, "enforced", testenv.Enforced)
}

// The manager removes the taint of the first rule and adds that of the second in one write: the node always has one
// of them.
func TestADependentRuleTakesOverInOneWrite(t *testing.T) {
	t.Parallel()
	const diskCondition = "example.com/DiskReady"
	c, id := cluster(t), nameOf(t)
	network := testenv.Rule(id)
	disk := testenv.Rule(id+"-disk", func(r *v1alpha1.NodeReadinessRule) {
		r.Spec.NodeSelector, r.Spec.DependsOn = network.Spec.NodeSelector, []string{network.Name}
		r.Spec.Conditions[0].Type = diskCondition
	})
	c.Create(t, network)
	c.EventuallyRule(t, network.Name, "enforced", testenv.Enforced)
	c.CreateNode(t, testenv.Node(id, testenv.Pool(id)), corev1.ConditionFalse)
	c.EventuallyNode(t, id, "held", held(network))
	c.Create(t, disk)
	c.EventuallyRule(t, disk.Name, "enforced", testenv.Enforced)

	var mu sync.Mutex
	states, bare := 0, 0
	watchAll(t, c.Client, &corev1.NodeList{}, func(event watch.Event) {
		node, ok := event.Object.(*corev1.Node)
		if !ok || node.Name != id {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		states++
		if !testenv.HasTaint(node, network.Spec.Taint.Key) && !testenv.HasTaint(node, disk.Spec.Taint.Key) {
			bare++
		}
	})
	c.EventuallyNode(t, id, "held by the first rule only", func(n *corev1.Node) bool { return held(network)(n) && free(disk)(n) })
	c.SetCondition(t, id, testenv.Condition, corev1.ConditionTrue)
	c.EventuallyNode(t, id, "held by the second rule", func(n *corev1.Node) bool { return free(network)(n) && held(disk)(n) })
	mu.Lock()
	if states == 0 || bare > 0 {
		t.Errorf("in %d of %d states the node was held by neither rule", bare, states)
	}
	mu.Unlock()
	c.SetCondition(t, id, diskCondition, corev1.ConditionTrue)
	c.EventuallyNode(t, id, "released", free(disk))
}

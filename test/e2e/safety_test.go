package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/e2e/lab"
)

const (
	agentCondition = "example.com/AgentReady"
	agentTaint     = "readiness.k8s.io/AgentReady"
)

// agentRule returns a continuous rule for the agent's condition, with these additional fields.
func agentRule(name, taint, effect, fields string) string {
	return fmt.Sprintf(`apiVersion: readiness.node.x-k8s.io/v1alpha1
kind: NodeReadinessRule
metadata: {name: %s}
spec:
  enforcementMode: continuous
  taint: {key: %s, effect: %s}
  nodeSelector: {matchLabels: {example.com/pool: workers}}
%s`, name, taint, effect, fields)
}

// Scenario 10: a release of the reporter wrongly reports False on all three nodes, and the rule evicts. One
// node is held, two stay in use. Then the reporter of one node is killed repeatedly, after it reported True:
// the node is held when the report is too old. And a node whose condition is never reported is stuck.
func TestMaxUnavailableLimitsHeldNodesOnRealNodes(t *testing.T) {
	l := start(t)
	names := []string{"n1", "n2", "n3"}
	l.Kubectl.Run(t, "apply", "-f", testdata("agent.yaml"))
	l.EventuallyNodes(t, "reported", is(agentCondition, corev1.ConditionTrue), names...)
	workload(t, l, "web", 3, nil)
	working(t, l, "web", 3)
	l.Apply(t, agentRule("agent", agentTaint, "NoExecute", `  maxUnavailable: 1
  conditions: [{type: example.com/AgentReady, requiredStatus: "True"}]
`))
	l.EventuallyRule(t, "agent", "enforced", testenv.Enforced)
	away := l.Watch(t)
	lie(t, l, "file:///proc/no-such-file")
	l.EventuallyNodes(t, "slandered", is(agentCondition, corev1.ConditionFalse), names...)
	var stay []string
	l.EventuallyRule(t, "agent", "limited", func(r *v1alpha1.NodeReadinessRule) bool {
		stay = r.Status.LimitedNodes
		return testenv.Is(v1alpha1.ConditionEnforced, metav1.ConditionFalse, v1alpha1.ReasonLimited)(r) && len(stay) == 2 && r.Status.Summary.Held == 1
	})
	l.EventuallyNodes(t, "still in use", released(agentTaint), stay...)
	working(t, l, "web", 2) // the topology keeps the third from joining them
	l.Step(t, "the reporter wrongly reports False on three nodes: one is held, "+strings.Join(stay, " and ")+" stay")
	if text := readiness(t, l, "why", "node/"+stay[0]); !strings.Contains(text, "maxUnavailable") {
		t.Errorf("why does not name what keeps %s in use:\n%s", stay[0], text)
	}

	lie(t, l, "file:///proc/self/stat")
	l.EventuallyNodes(t, "released", released(agentTaint), names...)
	l.EventuallyRule(t, "agent", "enforced", testenv.Enforced)
	mostAway(t, away, agentTaint, 1)
	l.Step(t, "it reports True again: all nodes are released, and never were two held at a time")
	l.Kubectl.Run(t, "delete", "nrr", "agent")

	diesForGood(t, l, "n2")
	neverComes(t, l)
}

// lie changes the endpoint of the reporters, on all nodes at once.
func lie(t *testing.T, l *lab.Lab, endpoint string) {
	t.Helper()
	l.Kubectl.Run(t, "set", "env", "daemonset/agent", "-n", "kube-system", "CHECK_ENDPOINT="+endpoint)
	l.Kubectl.Run(t, "rollout", "status", "daemonset/agent", "-n", "kube-system", "--timeout=90s")
}

// mostAway fails the test if more nodes than this had the taint at a time.
func mostAway(t *testing.T, history *lab.History, taint string, limit int) {
	t.Helper()
	away := map[string]bool{}
	most := 0
	for _, s := range history.All() {
		away[s.Node.Name] = s.Type != watch.Deleted && held(taint)(s.Node)
		now := 0
		for _, is := range away {
			if is {
				now++
			}
		}
		most = max(most, now)
	}
	if most != limit {
		t.Errorf("%d nodes were held at a time, want %d", most, limit)
	}
}

// diesForGood kills the reporter of a node repeatedly: its condition stays True, and the node is held a minute
// after the last report.
func diesForGood(t *testing.T, l *lab.Lab, node string) {
	t.Helper()
	const taint = "readiness.k8s.io/AgentHeard"
	l.Apply(t, agentRule("heard", taint, "NoSchedule", `  conditions: [{type: example.com/AgentReady, requiredStatus: "True", maxAge: 60s}]
`))
	l.EventuallyRule(t, "heard", "enforced", testenv.Enforced)
	history := l.Watch(t)
	stop := killAgain(t, l, node)
	l.EventuallyNode(t, node, "held", held(taint))
	var heard corev1.Node
	l.Get(t, &heard, "", node)
	if !is(agentCondition, corev1.ConditionTrue)(&heard) {
		t.Error("the condition is not True anymore, so this is another scenario")
	}
	if text := readiness(t, l, "why", "node/"+node); !strings.Contains(text, "no heartbeat for more than 1m0s") {
		t.Errorf("why does not show that the last report is too old:\n%s", text)
	}
	l.Step(t, node+" is held: its reporter died after it reported True")
	for _, other := range []string{"n1", "n3"} {
		history.Always(t, other, "released", released(taint))
	}
	stop()
	l.Kubectl.Run(t, "delete", "pod", "-n", "kube-system", "-l", "app=agent", "--field-selector=spec.nodeName="+node) // it waits for long by now
	l.EventuallyNode(t, node, "released", released(taint))
	l.Step(t, node+" is released: its reporter is back")
	l.Kubectl.Run(t, "delete", "nrr", "heard")
}

// killAgain sends SIGKILL to every new reporter process of a node, until it is stopped.
func killAgain(t *testing.T, l *lab.Lab, node string) (stop func()) {
	t.Helper()
	var pod corev1.Pod
	for _, p := range podsOf(t, l, "kube-system", "agent") {
		if p.Spec.NodeName == node {
			pod = p
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	killed, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for _, pid := range processes(l.Node(node), pod.UID) {
				if syscall.Kill(pid, syscall.SIGKILL) == nil {
					killed++
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() {
		cancel()
		<-done
		if killed == 0 {
			t.Error("no reporter was killed")
		}
	}
}

// processes returns the reporter processes of a pod.
func processes(n *lab.Node, uid any) []int {
	var found []int
	for _, depth := range []string{"", "*"} {
		files, _ := filepath.Glob(n.Cgroup("memory", filepath.Join("kubepods", depth, fmt.Sprint("pod", uid), "*", "cgroup.procs")))
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				continue // it has just ended
			}
			for word := range strings.FieldsSeq(string(data)) {
				pid, err := strconv.Atoi(word)
				command, _ := os.ReadFile(filepath.Join("/proc", word, "cmdline"))
				if err == nil && strings.Contains(string(command), "readygate-reporter") {
					found = append(found, pid)
				}
			}
		}
	}
	return found
}

// neverComes: no reporter reports the condition, so the nodes are stuck until the deadline releases them.
func neverComes(t *testing.T, l *lab.Lab) {
	t.Helper()
	const taint = "readiness.k8s.io/NeverReady"
	never := func(action string) string {
		return agentRule("never", taint, "NoSchedule", `  progressDeadlineSeconds: 5
  onDeadline: `+action+`
  conditions: [{type: example.com/NeverReady, requiredStatus: "True"}]
`)
	}
	l.Apply(t, never("Report"))
	l.EventuallyRule(t, "never", "stuck", func(r *v1alpha1.NodeReadinessRule) bool {
		return r.Status.Summary != nil && r.Status.Summary.Stuck == 3
	})
	said(t, l, "n1", v1alpha1.EventStuck, "example.com/NeverReady")
	if text := readiness(t, l, "why", "node/n1"); !strings.Contains(text, "example.com/NeverReady") || !strings.Contains(text, "stuck") {
		t.Errorf("why does not show that n1 is stuck, and why:\n%s", text)
	}
	l.Step(t, "three nodes are stuck")
	l.Apply(t, never("Release"))
	l.EventuallyNodes(t, "released by the deadline", released(taint), "n1", "n2", "n3")
	said(t, l, "n1", v1alpha1.EventDeadlineReleased, "deadline")
	l.Step(t, "the deadline releases them")
}

// readiness returns the output of kubectl readiness.
func readiness(t *testing.T, l *lab.Lab, args ...string) string {
	t.Helper()
	return l.Kubectl.Tool(t, filepath.Join(testenv.Root(), "bin", "kubectl-readiness"), args...)
}

// said waits for an event on a node with this text.
func said(t *testing.T, l *lab.Lab, node, reason, text string) {
	t.Helper()
	testenv.Eventually(t, "the event "+reason, func(context.Context) error {
		var obj corev1.Node
		l.Get(t, &obj, "", node)
		for _, e := range l.Events(t, &obj) {
			if e.Reason == reason && strings.Contains(e.Note, text) {
				return nil
			}
		}
		return fmt.Errorf("no event of %s has %s", node, text)
	})
}

// binding is a pod that was bound to a node.
type binding struct {
	pod, node string
	version   int
	// works is true if the node had a network when the binding was seen.
	works bool
}

// bindings has the pods of an app that were bound since.
type bindings struct {
	mu  sync.Mutex
	all []binding
}

// watchBindings records which pods of the app are bound to the node from now on, and whether
// flannel had written its file in this boot.
func watchBindings(t *testing.T, l *lab.Lab, app, node string) *bindings {
	t.Helper()
	b := &bindings{}
	var list corev1.PodList
	if err := l.Client.List(t.Context(), &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, pod := range list.Items {
		known[pod.Name] = pod.Spec.NodeName != ""
	}
	events, err := l.Client.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"app": app},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for event := range events.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || pod.Spec.NodeName != node || known[pod.Name] {
				continue
			}
			known[pod.Name] = true
			version, _ := strconv.Atoi(pod.ResourceVersion)
			b.mu.Lock()
			b.all = append(b.all, binding{pod: pod.Name, node: node, version: version, works: l.Node(node).Works()})
			b.mu.Unlock()
		}
	}()
	t.Cleanup(events.Stop)
	return b
}

func (b *bindings) list() []binding {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.all)
}

// version is that of the first state of the node, after this version, that satisfies the check.
func version(t *testing.T, history *lab.History, node string, after int, check func(*corev1.Node) bool) (int, time.Time) {
	t.Helper()
	for _, s := range history.Of(node) {
		v, err := strconv.Atoi(s.Node.ResourceVersion)
		if err == nil && v > after && check(s.Node) {
			return v, s.Seen
		}
	}
	t.Fatalf("%s was never so", node)
	return 0, time.Time{}
}

// Scenario 11: with bootstrapScope Boot a reboot counts. A machine that is away for long is held before
// it is back, and no pod is sent to it before its network works. One that reboots before anybody
// misses it is held as soon as its new boot is known.
func TestBootstrapScopeBootHoldsRebootedNodes(t *testing.T) {
	l := start(t)
	l.Kubectl.Run(t, "patch", "nrr", flannelRule, "--type=merge", "-p", `{"spec":{"bootstrapScope":"Boot"}}`)
	l.EventuallyRule(t, flannelRule, "enforced", testenv.Enforced)
	on := func(node string) map[string]string { return map[string]string{corev1.LabelHostname: node} }
	workload(t, l, "slow", 2, on("n1"), anywhere)
	workload(t, l, "quick", 2, on("n3"), anywhere)
	working(t, l, "slow", 2)
	working(t, l, "quick", 2)

	slow(t, l)
	leadElsewhere(t, l, "n3")
	for attempt := 1; !quick(t, l); attempt++ { // a busy machine may boot for longer than a node goes unmissed
		if attempt == 3 {
			t.Fatal("n3 was missed before it was back, each time: no reboot was quick")
		}
		l.Step(t, "n3 was missed before it was back: once more")
		l.Kubectl.Run(t, "scale", "deployment/quick", "--replicas=2")
		testenv.Eventually(t, "two pods are left", func(context.Context) error {
			if n := len(podsOf(t, l, metav1.NamespaceDefault, "quick")); n != 2 {
				return fmt.Errorf("%d pods", n)
			}
			return nil
		})
	}
}

func slow(t *testing.T, l *lab.Lab) {
	t.Helper()
	history, bound := l.Watch(t), watchBindings(t, l, "slow", "n1")
	var before corev1.Node
	l.Get(t, &before, "", "n1")
	l.Node("n1").PowerOff(t)
	l.EventuallyNode(t, "n1", "lost", is(string(corev1.NodeReady), corev1.ConditionUnknown))
	l.EventuallyNode(t, "n1", "held before it is back", held(flannelTaint))
	l.Kubectl.Run(t, "scale", "deployment/slow", "--replicas=6")
	l.Step(t, "n1 is lost, and held; pods wait for it")
	l.Node("n1").Boot(t)
	l.EventuallyNode(t, "n1", "released", func(node *corev1.Node) bool {
		return released(flannelTaint)(node) && rebooted(node, &before) && is(string(corev1.NodeReady), corev1.ConditionTrue)(node)
	})
	working(t, l, "slow", 6)
	all := bound.list()
	for _, b := range all {
		if !b.works {
			t.Errorf("%s was sent to n1 before its network worked", b.pod)
		}
	}
	if len(all) < 4 {
		t.Errorf("only %d pods were bound: that was no test", len(all))
	}
	back, _ := version(t, history, "n1", 0, func(node *corev1.Node) bool { return rebooted(node, &before) })
	free, _ := version(t, history, "n1", back, released(flannelTaint))
	for _, b := range all {
		if b.version < free {
			t.Errorf("%s was bound at %d, before n1 was released at %d", b.pod, b.version, free)
		}
	}
	l.Step(t, fmt.Sprintf("n1 is back: %d pods were sent to it, all after its release", len(all)))
}

// leadElsewhere makes another node's manager lead: without a leader no manager sees a new boot, and what
// is reported in it by then counts only when it is said again.
func leadElsewhere(t *testing.T, l *lab.Lab, node string) {
	t.Helper()
	testenv.Eventually(t, "a leader on another node than "+node, func(context.Context) error {
		if holder, at := leader(t, l); at == node {
			l.Kubectl.Run(t, "delete", "pod", "-n", namespace, "--field-selector=spec.nodeName="+node)
			return fmt.Errorf("%s leads, on %s", holder, at)
		}
		return nil
	})
}

// quick is false if the reboot was not quick enough.
func quick(t *testing.T, l *lab.Lab) bool {
	t.Helper()
	history, bound := l.Watch(t), watchBindings(t, l, "quick", "n3")
	var before corev1.Node
	l.Get(t, &before, "", "n3")
	l.Node("n3").PowerOff(t)
	l.Kubectl.Run(t, "scale", "deployment/quick", "--replicas=6") // the control plane has not noticed the reboot yet
	l.Node("n3").Boot(t)
	l.EventuallyNode(t, "n3", "back and held", func(node *corev1.Node) bool { return rebooted(node, &before) && held(flannelTaint)(node) })
	l.Kubectl.Run(t, "scale", "deployment/quick", "--replicas=9") // these have to wait
	l.EventuallyNode(t, "n3", "released", released(flannelTaint))
	working(t, l, "quick", 9)

	back, seen := version(t, history, "n3", 0, func(node *corev1.Node) bool { return rebooted(node, &before) })
	patched, heldAt := version(t, history, "n3", back-1, held(flannelTaint))
	if patched == back {
		return false
	}
	free, _ := version(t, history, "n3", patched, released(flannelTaint))
	var down, early, late, after int
	for _, b := range bound.list() {
		switch {
		case b.version < back:
			down++
		case b.version < patched:
			early++
		case b.version < free:
			late++
		default:
			after++
		}
	}
	if late > 0 {
		t.Errorf("%d pods were bound to n3 while it was held", late)
	}
	if after < 3 {
		t.Errorf("only %d pods were bound after its release: that was no test", after)
	}
	if took := heldAt.Sub(seen); took > 10*time.Second { // usually some milliseconds; the machine may be busy
		t.Errorf("n3 was held %v after its new boot was known: not because of it", took)
	}
	l.Step(t, fmt.Sprintf("n3 rebooted before anybody missed it: held %v after its new boot was known; pods bound to it while it was down: %d, before it was held: %d, after its release: %d",
		heldAt.Sub(seen).Round(time.Millisecond), down, early, after))
	return true
}

func rebooted(node, before *corev1.Node) bool {
	return node.Status.NodeInfo.BootID != before.Status.NodeInfo.BootID
}

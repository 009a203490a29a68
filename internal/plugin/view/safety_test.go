package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/view"
)

func maxAge(age time.Duration) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) { r.Spec.Conditions[0].MaxAge = &metav1.Duration{Duration: age} }
}

func minReady(seconds int32) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) { r.Spec.MinReadySeconds = seconds }
}

func limit(nodes int) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) { r.Spec.MaxUnavailable = ptr.To(intstr.FromInt(nodes)) }
}

func release(after time.Duration) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) {
		r.Spec.ProgressDeadlineSeconds, r.Spec.OnDeadline = ptr.To(int32(after/time.Second)), v1alpha1.DeadlineRelease
	}
}

func perBoot(r *v1alpha1.NodeReadinessRule) {
	bootstrapOnly(r)
	r.Spec.BootstrapScope = v1alpha1.BootstrapScopeBoot
}

func after(names ...string) ruleOption {
	return func(r *v1alpha1.NodeReadinessRule) { r.Spec.DependsOn = names }
}

// booted sets the boot of the node, and the boot in which it was released.
func booted(rule, now, completed string) nodeOption {
	return func(n *corev1.Node) {
		n.Status.NodeInfo.BootID = now
		n.Annotations[v1alpha1.CompletedPrefix+"uid-"+rule] = fmt.Sprintf(`{"boot-id":%q,"rule-name":%q}`, completed, rule)
	}
}

func lost(n *corev1.Node) { n.Status.Conditions[0].Status = Unknown }

func TestSimulationAppliesSafetyFields(t *testing.T) {
	bad := func(names ...string) (nodes []*corev1.Node) {
		for _, name := range names {
			nodes = append(nodes, worker(name, says("a", False)))
		}
		return nodes
	}
	for name, c := range map[string]struct {
		rules, candidates []*v1alpha1.NodeReadinessRule
		nodes             []*corev1.Node
		want              string
	}{
		"a limit keeps the rest":            {nil, rules(rule("a", limit(1))), bad("n1", "n2", "n3"), "n1 Added; 1 held, 2 released, 2 limited, 0 unsettled"},
		"a limit that is added":             {rules(rule("a", younger, dryRun)), rules(rule("a", limit(2))), bad("n1", "n2", "n3"), "n1 Added; n2 Added; 2 held, 1 released, 1 limited, 0 unsettled"},
		"a word that is too old":            {nil, rules(rule("a", maxAge(2*time.Minute))), []*corev1.Node{worker("w", says("a", True))}, "w Added; 1 held, 0 released, 0 limited, 0 unsettled"},
		"a word that is not":                {nil, rules(rule("a", maxAge(20*time.Minute))), []*corev1.Node{worker("w", says("a", True))}, "0 held, 1 released, 0 limited, 0 unsettled"},
		"a deadline that is over":           {rules(rule("a")), rules(rule("a", release(10*time.Minute))), []*corev1.Node{worker("w", heldBy("a", noderule.OriginAdded))}, "w Removed; 0 held, 1 released, 0 limited, 0 unsettled"},
		"a release that has to wait":        {rules(rule("a")), rules(rule("a", minReady(60))), []*corev1.Node{worker("w", says("a", True), heldBy("a", noderule.OriginAdded))}, "1 held, 0 released, 0 limited, 0 unsettled"},
		"another boot":                      {rules(rule("a", bootstrapOnly)), rules(rule("a", perBoot)), []*corev1.Node{worker("w", says("a", True), booted("a", "new", "old"))}, "w Added; 1 held, 0 released, 0 limited, 0 unsettled"},
		"a rule that waits for another one": {rules(rule("b")), rules(rule("a", younger, after("b"))), []*corev1.Node{worker("w", says("a", False), heldBy("b", noderule.OriginAdded))}, "0 held, 1 released, 0 limited, 0 unsettled"},
	} {
		t.Run(name, func(t *testing.T) {
			s := view.Simulate(c.rules, c.candidates, nil, c.nodes, noon)
			var got []string
			for _, e := range s.Effects {
				got = append(got, fmt.Sprint(e.Node, " ", e.Change))
			}
			count := s.Rules[0].Count
			got = append(got, fmt.Sprintf("%d held, %d released, %d limited, %d unsettled", count.Held, count.Released, count.Limited, count.Unsettled))
			if text := strings.Join(got, "; "); text != c.want {
				t.Errorf("got  %q\nwant %q", text, c.want)
			}
		})
	}
}

func TestChaptersNameTheActiveSafetyField(t *testing.T) {
	listed := func(r *v1alpha1.NodeReadinessRule) { r.Status.LimitedNodes = []string{"w"} }
	byDeadline := func(n *corev1.Node) {
		n.Annotations[v1alpha1.CompletedPrefix+"uid-a"] = `{"by":"deadline","rule-name":"a"}`
	}
	for name, c := range map[string]struct {
		node *corev1.Node
		rule *v1alpha1.NodeReadinessRule
		want string
	}{
		"about to hold a lost node":            {worker("w", lost, booted("a", "x", "x")), rule("a", perBoot), "is about to hold this node: the node is not Ready"},
		"holds a lost node":                    {worker("w", lost, heldBy("a", noderule.OriginAdded), booted("a", "x", "x")), rule("a", perBoot), "holds this node: the node is not Ready"},
		"limited":                              {worker("w", says("a", False)), rule("a", younger, limit(0), listed), "would hold this node, but leaves it released"},
		"would be limited":                     {worker("w", says("a", False)), rule("a", younger, limit(0), listed, dryRun), "is a dry run: it would leave this node released"},
		"about to release at the deadline":     {worker("w", heldBy("a", noderule.OriginAdded)), rule("a", release(10*time.Minute)), "is about to release this node after 10m0s"},
		"released permanently at the deadline": {worker("w", byDeadline), rule("a", bootstrapOnly, release(10*time.Minute)), "released this node at its deadline, permanently"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := explanation(c.node, c.rule).Chapters[0].Text; !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestChaptersNameTheRuleThatReleasesFirst(t *testing.T) {
	const first = "until rule net has released it (dependsOn)"
	for name, c := range map[string]struct {
		node *corev1.Node
		disk *v1alpha1.NodeReadinessRule
		want string
	}{
		"holds the node too":          {worker("w", says("net", False), heldBy("net", noderule.OriginCreated), heldBy("disk", noderule.OriginCreated)), rule("disk", younger, after("net")), "holds this node and does not release it " + first},
		"is about to hold a new boot": {worker("w", says("net", False), heldBy("net", noderule.OriginAdded), booted("disk", "new", "old")), rule("disk", younger, perBoot, after("net")), "is about to hold this node and does not release it " + first},
		"does not hold the node":      {worker("w", says("net", False), heldBy("net", noderule.OriginAdded)), rule("disk", younger, after("net")), "does not change this node " + first},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, chapter := range explanation(c.node, rule("net"), c.disk).Chapters {
				got[chapter.Rule] = chapter.Text
			}
			if got["disk"] != c.want {
				t.Errorf("got %q, want %q", got["disk"], c.want)
			}
		})
	}
}

func TestAdviceNamesTheFirstCause(t *testing.T) {
	both := worker("w", says("net", False), says("disk", False), heldBy("net", noderule.OriginCreated), heldBy("disk", noderule.OriginCreated))
	s := explanation(both, rule("net"), rule("disk", younger, after("net")))
	if next := strings.Join(s.Next, "\n"); !strings.Contains(next, "example.com/net is False") || strings.Contains(next, "example.com/disk") {
		t.Errorf("next steps of a node that waits for its network first: %s", next)
	}
	for _, c := range s.Chapters {
		if c.Rule == "disk" && len(c.Missing) > 0 {
			t.Errorf("the rule that waits misses %v already", c.Missing)
		}
	}

	silent := explanation(worker("w", says("net", True), heldBy("net", noderule.OriginAdded)), rule("net", maxAge(2*time.Minute)))
	if next := strings.Join(silent.Next, "\n"); !strings.Contains(next, "example.com/net counts as Unknown: no heartbeat for more than 2m0s") || strings.Contains(next, "AgentSays") {
		t.Errorf("next steps for a silent reporter: %s", next)
	}
	if since := silent.Chapters[0].Missing[0].Since; !since.Equal(noon.Add(-8 * time.Minute)) {
		t.Errorf("it counts as Unknown since %v, must be when it became too old", since)
	}

	lost := explanation(worker("w", lost, says("net", True), heldBy("net", noderule.OriginAdded), booted("net", "x", "x")), rule("net", perBoot))
	if next := strings.Join(lost.Next, "\n"); !strings.Contains(next, "The kubelet does not report") || strings.Contains(next, "example.com/net") {
		t.Errorf("next steps for a lost node: %s", next)
	}
}

// A node is blocked by a condition only if it is held because of it, as in the manager's metric.
func TestNodesThatAreNotHeldAreNotBlocked(t *testing.T) {
	r := rule("a", younger, limit(0), func(r *v1alpha1.NodeReadinessRule) { r.Status.LimitedNodes = []string{"w"} })
	book, tally := view.NewBook(rules(r)), view.Tally{}
	line := book.Node(worker("w", says("a", False)), noon)
	tally.Add(line)
	if count := book.Rules(tally)[0].Count; count.Limited != 1 || len(count.Blocked) > 0 {
		t.Errorf("counted %+v", count)
	}
	tally.Remove(line)
	if count := book.Rules(tally)[0].Count; count.Limited != 0 {
		t.Errorf("counted %+v", count)
	}
}

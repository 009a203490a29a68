package views_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/view"
	"github.com/readygate/readygate/internal/testenv"
)

var pools = []string{"red", "green", "blue"}

// randomRule is of any kind; some are in conflict with each other.
func randomRule(r *rand.Rand, i int) *v1alpha1.NodeReadinessRule {
	return testenv.Rule(fmt.Sprint("rule-", i), func(rule *v1alpha1.NodeReadinessRule) {
		rule.Spec.NodeSelector.MatchLabels = map[string]v1alpha1.LabelValue{"pool": v1alpha1.LabelValue(pools[r.IntN(len(pools))])}
		rule.Spec.Conditions[0].Type = conditionTypes[r.IntN(len(conditionTypes))]
		if r.IntN(4) == 0 {
			rule.Spec.Taint.Key = testenv.TaintKey("shared")
		}
		if r.IntN(3) == 0 {
			testenv.BootstrapOnly(rule)
		}
		if r.IntN(5) == 0 {
			testenv.DryRun(rule)
		}
		randomSafety(r, i, &rule.Spec)
	})
}

// randomSafety gives a rule some of the optional fields.
func randomSafety(r *rand.Rand, i int, spec *v1alpha1.NodeReadinessRuleSpec) {
	if r.IntN(4) == 0 {
		spec.MinReadySeconds = 1
	}
	if r.IntN(3) == 0 {
		spec.ProgressDeadlineSeconds = ptr.To[int32](2)
		spec.OnDeadline = []v1alpha1.DeadlineAction{v1alpha1.DeadlineReport, v1alpha1.DeadlineRelease}[r.IntN(2)]
	}
	if i > 0 && r.IntN(4) == 0 {
		spec.DependsOn = []string{fmt.Sprint("rule-", r.IntN(i))}
	}
	if r.IntN(3) == 0 {
		spec.Conditions[0].MaxAge = &metav1.Duration{Duration: time.Hour}
	}
	if spec.EnforcementMode == v1alpha1.EnforcementModeBootstrapOnly && r.IntN(2) == 0 {
		spec.BootstrapScope = v1alpha1.BootstrapScopeBoot
	}
	if spec.EnforcementMode == v1alpha1.EnforcementModeContinuous && r.IntN(2) == 0 {
		spec.MaxUnavailable = ptr.To(intstr.FromInt(r.IntN(3)))
	}
}

var conditionTypes = []string{"example.com/Network", "example.com/Storage"}

func randomise(t *testing.T, c *testenv.Cluster, r *rand.Rand, node string) {
	t.Helper()
	statuses := []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}
	for _, conditionType := range conditionTypes {
		if r.IntN(3) > 0 {
			c.SetCondition(t, node, conditionType, statuses[r.IntN(len(statuses))])
		}
	}
	base := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	changed := base.DeepCopy()
	changed.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: statuses[r.IntN(2)]}}
	if r.IntN(3) == 0 {
		changed.Status.NodeInfo.BootID = fmt.Sprint("boot-", r.IntN(3))
	}
	if r.IntN(3) == 0 { // a stale heartbeat
		changed.Status.Conditions = append(changed.Status.Conditions, corev1.NodeCondition{
			Type: corev1.NodeConditionType(conditionTypes[r.IntN(len(conditionTypes))]), Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(time.Now().Add(-2 * time.Hour)),
		})
	}
	if err := c.Client.Status().Patch(t.Context(), changed, client.StrategicMergeFrom(base)); err != nil {
		t.Fatal(err)
	}
}

// quiet waits until the manager has nothing left to do.
func quiet(t *testing.T, c *testenv.Cluster) []*v1alpha1.NodeReadinessRule {
	t.Helper()
	var rules []*v1alpha1.NodeReadinessRule
	testenv.Eventually(t, "the manager to be done", func(ctx context.Context) error {
		var list v1alpha1.NodeReadinessRuleList
		var nodes corev1.NodeList
		if err := c.Client.List(ctx, &list); err != nil {
			return err
		}
		if err := c.Client.List(ctx, &nodes); err != nil {
			return err
		}
		rules = nil
		for i := range list.Items {
			rules = append(rules, &list.Items[i])
		}
		book, now := noderule.NewRulebook(rules), time.Now()
		limits := book.Limits(nodesOf(&nodes), now)
		for node := range nodesOf(&nodes) {
			e := book.Evaluate(node, now)
			e.ApplyLimits(limits)
			e.ApplyDependencies()
			if plan := e.Plan(nil); !plan.Empty() {
				return fmt.Errorf("node %s: %+v", node.Name, plan.Changes)
			}
		}
		for _, rule := range book.Rules() {
			status := rules[slices.IndexFunc(rules, func(r *v1alpha1.NodeReadinessRule) bool { return r.UID == rule.UID })].Status
			summary := noderule.Summarize(rule, nodesOf(&nodes), time.Now(), 0)
			if s := status.Summary; s == nil || int(s.Selected) != summary.Selected || int(s.Held) != summary.Holding || int(s.Stuck) != summary.Stuck || int(s.Limited) != summary.Limited {
				return fmt.Errorf("rule %s: status %+v, the core says %+v", rule.Name, s, summary)
			}
		}
		return nil
	})
	return rules
}

func nodesOf(list *corev1.NodeList) func(func(*noderule.Node) bool) {
	return func(yield func(*noderule.Node) bool) {
		for i := range list.Items {
			if !yield(noderule.NodeOf(&list.Items[i])) {
				return
			}
		}
	}
}

// On random clusters with random changes, every view shows what the manager has done.
func TestEveryViewAgreesWithTheManager(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	if _, stop, err := c.RunManager(); err != nil {
		t.Fatal(err)
	} else {
		t.Cleanup(func() { _ = stop() })
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range 8 {
		c.Create(t, randomRule(r, i))
	}
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprint("node-", i))
		c.Create(t, testenv.Node(names[i], map[string]string{"pool": pools[r.IntN(len(pools))]}))
	}
	a := newAskers(t, c)
	for round := range 4 {
		for _, name := range names {
			randomise(t, c, r, name)
		}
		a.agree(t, c, names)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}

// agree waits until the manager is done, and compares all views.
func (a *askers) agree(t *testing.T, c *testenv.Cluster, names []string) {
	t.Helper()
	rules := quiet(t, c)
	testenv.Eventually(t, "the lines to agree with the status of rules", func(context.Context) error {
		for _, line := range a.fleet.Snapshot().Rules {
			i := slices.IndexFunc(rules, func(r *v1alpha1.NodeReadinessRule) bool { return r.Name == line.Name })
			if s := rules[i].Status.Summary; line.Count.Selected != int(s.Selected) || line.Count.Held != int(s.Held) || line.Count.Released != int(s.Released) ||
				!rules[i].Spec.DryRun && (line.Count.Stuck != int(s.Stuck) || line.Count.Limited != int(s.Limited)) {
				return fmt.Errorf("rule %s: the line counts %+v, the manager %+v", line.Name, line.Count, *s)
			}
			if accepted := testenv.Is(v1alpha1.ConditionAccepted, "True", v1alpha1.ReasonAccepted)(rules[i]); accepted == (line.Standing == v1alpha1.ReasonConflict) {
				return fmt.Errorf("rule %s: the row has %s", line.Name, line.Standing)
			}
		}
		return nil
	})
	for _, name := range names { // time passes, and may change a node meanwhile
		testenv.Eventually(t, "all views of "+name+" to agree", func(ctx context.Context) error { return a.agreeOn(ctx, t, c, name) })
	}
}

// agreeOn compares all views of one node.
func (a *askers) agreeOn(ctx context.Context, t *testing.T, c *testenv.Cluster, name string) error {
	t.Helper()
	var node corev1.Node
	if err := c.Client.Get(ctx, keyOf(name), &node); err != nil {
		return err
	}
	held := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return strings.HasPrefix(taint.Key, "readiness.k8s.io/") })
	why, page := a.why(t, name), a.explanation(t, name)
	for who, state := range map[string]noderule.State{"why": why.State, "the page": page.State, "its tile": a.tiles(t)[name]} {
		if (state == noderule.Held) != held {
			return fmt.Errorf("tainted by the manager: %v, %s has %q; taints %v, annotations %v, conditions %v", held, who, state, node.Spec.Taints, node.Annotations, node.Status.Conditions)
		}
	}
	if held != (strings.Contains(why.Headline, " is held") || strings.Contains(why.Headline, " is stuck: held")) || !reflect.DeepEqual(holdersOf(why), holdersOf(page)) {
		return fmt.Errorf("tainted by the manager: %v, why has %q, the page %q", held, why.Headline, page.Headline)
	}
	return nil
}

// holdersOf returns the rules that hold the node, each with its unmet requirements.
func holdersOf(explanation view.Explanation) map[string]string {
	holders := map[string]string{}
	for _, chapter := range explanation.Chapters {
		if chapter.Held {
			holders[chapter.Rule] = fmt.Sprint(chapter.Missing)
		}
	}
	return holders
}

package admission_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/noderule"
)

// nodesPerBook are the nodes that one policy is asked about: compiling is what takes time.
const nodesPerBook = 40

// world is some rules, and the policy that was compiled from them.
type world struct {
	book    *noderule.Rulebook
	mutator *mutator
}

func genWorld(t *rapid.T) world {
	objs := genRules(t)
	return world{book: noderule.NewRulebook(objs), mutator: newMutator(t, admission.TaintNewNodesSpec(taintNewNodes(objs...)))}
}

// The policy holds a node that is created exactly where the core would; where time matters, it may
// hold more, and the manager releases.
func TestPolicyAndCoreAgreeOnNewNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWorld(t)
		for range nodesPerBook {
			before := genNode(t)
			before.CreationTimestamp = metav1.Time{} // the API server sets it after admission
			after := w.mutator.admit(t, created(before.DeepCopy()))

			before.CreationTimestamp, after.CreationTimestamp = metav1.NewTime(noon), metav1.NewTime(noon)
			put := w.check(t, before, after, noderule.OriginCreated, func(rule *noderule.Rule) bool {
				return noderule.Evaluate(rule, noderule.NodeOf(before), noon).State == noderule.Held
			})
			w.checkTheManagerAgrees(t, after, put, func(*noderule.Rule) bool { return true })
		}
	})
}

// The policy holds a node that is changed exactly where the core would, if the change makes
// the rule select the node and holding evicts no pod.
func TestPolicyAndCoreAgreeOnChangedNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWorld(t)
		for range nodesPerBook {
			old := genNode(t)
			asked := genChange(t, old)
			after := w.mutator.admit(t, updated(old.DeepCopy(), asked.DeepCopy()))

			before := asked.DeepCopy() // as it would be stored without the policy
			before.Status, after.Status = old.Status, old.Status
			comes := func(rule *noderule.Rule) bool {
				return rule.Taint.Effect != corev1.TaintEffectNoExecute && rule.MaxUnavailable == nil && !rule.Selects(noderule.NodeOf(old))
			}
			put := w.check(t, before, after, noderule.OriginLabelled, func(rule *noderule.Rule) bool {
				return comes(rule) && noderule.Evaluate(rule, noderule.NodeOf(before), noon).State == noderule.Held
			})
			w.checkTheManagerAgrees(t, after, put, comes)
		}
	})
}

// generous reports whether the policy may hold a node for the rule that the core would not hold.
func generous(rule *noderule.Rule) bool {
	return rule.MinReady > 0 || rule.Boot || slices.ContainsFunc(rule.Requirements, func(r v1alpha1.ConditionRequirement) bool { return r.MaxAge != nil })
}

// check compares what the policy made of the node with what is to be held, and returns the
// rules that it put on. Nothing else may change.
func (w world) check(t *rapid.T, before, after *corev1.Node, origin noderule.Origin, held func(*noderule.Rule) bool) []*noderule.Rule {
	want := before.DeepCopy()
	var put []*noderule.Rule
	for _, rule := range w.book.Rules() {
		key, value := noderule.AdmissionRecord(rule, origin)
		more := generous(rule) && rule.Selects(noderule.NodeOf(after)) && noderule.NodeOf(after).Has(rule.ID())
		if _, forged := before.Annotations[key]; generous(rule) && forged && !more {
			continue // a record without a taint, which only the manager reads
		}
		if !rule.Active() || noderule.NodeOf(before).Has(rule.ID()) || !held(rule) && !more {
			continue
		}
		if !generous(rule) {
			put = append(put, rule) // else the manager has a word in it
		}
		want.Spec.Taints = append(want.Spec.Taints, rule.Taint)
		metav1.SetMetaDataAnnotation(&want.ObjectMeta, key, value)
	}
	want.TypeMeta = after.TypeMeta
	if !equality.Semantic.DeepEqual(after, want) {
		t.Fatalf("of %+v\nthe policy made %+v\n      instead of %+v", before, after, want)
	}
	return put
}

// checkTheManagerAgrees checks that the manager has nothing to do for rules that the policy
// put on, and nothing to add for rules that the policy decides on.
func (w world) checkTheManagerAgrees(t *rapid.T, after *corev1.Node, put []*noderule.Rule, decides func(*noderule.Rule) bool) {
	for _, change := range w.book.Plan(noderule.NodeOf(after), noon).Changes {
		rule := w.book.Rule(change.UID)
		if slices.Contains(put, rule) || change.Kind == noderule.Added && rule != nil && decides(rule) && (!generous(rule) || !noderule.Carries(rule, noderule.NodeOf(after))) {
			t.Fatalf("the manager undoes or redoes what the policy did: %+v of %+v", change, after)
		}
	}
}

// The manager does not change a node that was just created, until a rule that has completed the node records it.
func TestTheManagerLeavesANewNodeAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWorld(t)
		for range nodesPerBook / 4 {
			n := node()
			n.Labels, n.Status.Conditions = genLabels(t), genConditions(t)
			plan := w.book.Plan(noderule.NodeOf(w.mutator.admit(t, created(n))), noon)
			if slices.ContainsFunc(plan.Changes, func(c noderule.Change) bool { return c.Kind != noderule.Completed && !generous(w.book.Rule(c.UID)) }) {
				t.Fatalf("the manager changes a node as the policy made it: %+v", plan)
			}
		}
	})
}

// A policy must not depend on how often it is asked: the API server asks again after others
// have changed the object.
func TestTaintNewNodesPolicyIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWorld(t)
		for range nodesPerBook / 4 {
			old := genNode(t)
			ask := func(n *corev1.Node) request { return updated(old.DeepCopy(), n.DeepCopy()) }
			n := genChange(t, old)
			if rapid.Bool().Draw(t, "created") {
				ask = func(n *corev1.Node) request { return created(n.DeepCopy()) }
			}
			once := w.mutator.admit(t, ask(n))
			if twice := w.mutator.admit(t, ask(once)); !equality.Semantic.DeepEqual(once, twice) {
				t.Fatalf("made %+v\nand then %+v", once, twice)
			}
		}
	})
}

func TestPolicyAddsNoTaintToUpdatesOfKubelets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWorld(t)
		for range 5 {
			old := genNode(t)
			n := genChange(t, old)
			if got := w.mutator.admit(t, updated(old, n.DeepCopy(), kubelets)); !equality.Semantic.DeepEqual(got.Spec, n.Spec) || len(got.Annotations) != len(n.Annotations) {
				t.Fatalf("a kubelet wrote %+v\nand it became %+v", n, got)
			}
		}
	})
}

// The order of a map must not show in the text: every change of it makes API servers compile.
func TestTheSameRulesMakeTheSameText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objs := genRules(t)
		if other := rapid.Permutation(objs).Draw(t, "order"); !taintNewNodes(objs...).Equal(taintNewNodes(other...)) {
			t.Fatalf("%+v\n%+v", taintNewNodes(objs...), taintNewNodes(other...))
		}
	})
}

package podgate_test

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// programmed is the condition of a rule's component, unless a test sets another one.
const programmed = "policy.example.com/programmed"

func byPodCondition(name, kind string) v1alpha1.Component {
	return v1alpha1.Component{Name: name, PodCondition: &v1alpha1.ConditionComponent{Type: kind}}
}

func byFile(name, path string) v1alpha1.Component {
	return v1alpha1.Component{Name: name, File: &v1alpha1.FileComponent{Path: path}}
}

// rule selects the pods of the stage's namespaces with the label app: name. It has its
// own gate, and its component is a policy engine that sets the condition programmed.
func (s *stage) rule(name string, change ...func(*v1alpha1.PodReadinessRule)) *v1alpha1.PodReadinessRule {
	rule := &v1alpha1.PodReadinessRule{
		ObjectMeta: metav1.ObjectMeta{Name: s.id + "-" + name},
		Spec: v1alpha1.PodReadinessRuleSpec{
			NamespaceSelector: selector("stage", s.id), PodSelector: selector("app", name),
			Gate: "gates.example.com/" + s.id + "-" + name, Components: []v1alpha1.Component{byPodCondition("policy", programmed)},
		},
	}
	for _, f := range change {
		f(rule)
	}
	return rule
}

func selector(label, value string) *v1alpha1.LabelSelector {
	return &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{label: v1alpha1.LabelValue(value)}}
}

func components(all ...v1alpha1.Component) func(*v1alpha1.PodReadinessRule) {
	return func(r *v1alpha1.PodReadinessRule) { r.Spec.Components = all }
}

func deadline(seconds int32, action v1alpha1.DeadlineAction) func(*v1alpha1.PodReadinessRule) {
	return func(r *v1alpha1.PodReadinessRule) { r.Spec.DeadlineSeconds, r.Spec.OnDeadline = &seconds, action }
}

func startHold(r *v1alpha1.PodReadinessRule) { r.Spec.StartHold = true }

func closesOnNotReady(r *v1alpha1.PodReadinessRule) { r.Spec.ClosePolicy = v1alpha1.CloseOnNotReady }

// enforce makes rules and waits until they are enforced: pods that are created from then on have the
// gate.
func (s *stage) enforce(rules ...*v1alpha1.PodReadinessRule) {
	s.t.Helper()
	s.NeedMutatingPolicies(s.t)
	for _, rule := range rules {
		s.Create(s.t, rule)
	}
	for _, rule := range rules {
		s.wantRule(rule, "in force", inForce)
	}
}

// inForce reports whether pods are created with the gate of a rule, with or without agents.
func inForce(rule *v1alpha1.PodReadinessRule) bool { return enforced(rule) || noAgent(rule) }

var enforced = is(v1alpha1.ConditionEnforced, metav1.ConditionTrue, v1alpha1.ReasonEnforced)

// is reports whether a rule's condition has this status and reason, for the current generation.
func is(kind string, status metav1.ConditionStatus, reason string) func(*v1alpha1.PodReadinessRule) bool {
	return func(rule *v1alpha1.PodReadinessRule) bool {
		c := meta.FindStatusCondition(rule.Status.Conditions, kind)
		return c != nil && c.Status == status && c.Reason == reason && c.ObservedGeneration == rule.Generation
	}
}

// counts reports whether the status of a rule has these pod counts.
func counts(want v1alpha1.PodSummary) func(*v1alpha1.PodReadinessRule) bool {
	return func(rule *v1alpha1.PodReadinessRule) bool {
		return rule.Status.Summary != nil && *rule.Status.Summary == want
	}
}

// wantRule waits until the rule satisfies the check, and returns it.
func (s *stage) wantRule(rule *v1alpha1.PodReadinessRule, what string, check func(*v1alpha1.PodReadinessRule) bool) *v1alpha1.PodReadinessRule {
	s.t.Helper()
	var got *v1alpha1.PodReadinessRule
	testenv.Eventually(s.t, fmt.Sprintf("rule %s: %s", rule.Name, what), func(ctx context.Context) error {
		got = &v1alpha1.PodReadinessRule{}
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(rule), got); err != nil {
			return err
		}
		if !check(got) {
			return fmt.Errorf("summary %+v, status %+v", got.Status.Summary, got.Status)
		}
		return nil
	})
	return got
}

// remove deletes a rule and waits until it is gone.
func (s *stage) remove(rule *v1alpha1.PodReadinessRule) {
	s.t.Helper()
	if err := s.Client.Delete(s.t.Context(), rule); err != nil {
		s.t.Fatal(err)
	}
	s.wantGone(rule)
}

// wantGone waits until a deleted rule is gone.
func (s *stage) wantGone(rule *v1alpha1.PodReadinessRule) {
	s.t.Helper()
	testenv.Eventually(s.t, rule.Name+" to be gone", func(ctx context.Context) error {
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(rule), &v1alpha1.PodReadinessRule{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("still there (%v)", err)
	})
}

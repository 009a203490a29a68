package podrule

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1alpha1 "github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/manager/admission"
	"github.com/readygate/readygate/internal/manager/rulecache"
	"github.com/readygate/readygate/internal/text"
)

// standing is what is known of a rule.
type standing struct {
	rule *podrule.Rule
	// gap is why pods are not created with the gate, if that is known.
	gap        *admission.Gap
	known      bool
	holdsStart bool
	// others is the condition SoleController; nil if no other controller has a live lease.
	others *metav1.Condition
	// failure is why gates of a deleted rule are not all open.
	failure error

	// tally counts pods everywhere, and orphaned those on nodes without a live agent, which are
	// named.
	tally    podrule.Tally
	orphaned int
	nodes    []string
	// agents is how many are alive, and behind how many of them have not looked with the rule as it
	// is now.
	agents, behind int
}

// count adds up what agents report, and what was found where there is none.
func (s *standing) count(alive liveAgents, found *orphans) {
	s.tally = alive.count(s.rule)
	s.agents, s.behind = len(alive), alive.behind(s.rule)
	s.orphaned, s.nodes = found.addTo(&s.tally, s.rule.UID, alive)
	s.tally.Cut(v1alpha1.MaxListedPods)
}

func (s *standing) status(before *v1alpha1.PodReadinessRuleStatus, generation int64, now metav1.Time) v1alpha1.PodReadinessRuleStatus {
	status := v1alpha1.PodReadinessRuleStatus{
		ObservedGeneration: generation,
		Conditions:         slices.Clone(before.Conditions),
		Summary: &v1alpha1.PodSummary{
			Gated: int32(s.tally.Gated), Open: int32(s.tally.Open), Waiting: int32(s.tally.Waiting), Late: int32(s.tally.Late), //nolint:gosec // counts of pods
			Ungated: int32(s.tally.Ungated), WithoutAgent: int32(s.orphaned), Foreign: int32(s.tally.Foreign), LatchClosed: int32(s.tally.LatchClosed), //nolint:gosec // counts of pods
		},
		WaitingPods:       listed(s.tally.Waits),
		UngatedPods:       listed(s.tally.Without),
		NodesWithoutAgent: s.nodes[:min(len(s.nodes), v1alpha1.MaxListedPods)],
	}
	conditions, absent := []metav1.Condition{s.accepted(), s.enforced()}, []string(nil)
	if s.others != nil {
		conditions = append(conditions, *s.others)
	} else {
		absent = []string{nodev1alpha1.ConditionSoleController}
	}
	rulecache.SetConditions(&status.Conditions, generation, now, conditions, absent...)
	return status
}

func listed(pods []podrule.Listed) []v1alpha1.ListedPod {
	var all []v1alpha1.ListedPod
	for _, p := range pods {
		pod := v1alpha1.ListedPod{Namespace: p.Namespace, Name: p.Name, Node: p.Node, Why: text.Cut(p.Why, 512)}
		if !p.Since.IsZero() {
			since := metav1.NewTime(p.Since)
			pod.Since = &since
		}
		all = append(all, pod)
	}
	return all
}

func (s *standing) accepted() metav1.Condition {
	if s.rule.Invalid != nil {
		return rulecache.Condition(v1alpha1.ConditionAccepted, false, v1alpha1.ReasonInvalid, s.rule.Invalid.Error())
	}
	return rulecache.Condition(v1alpha1.ConditionAccepted, true, v1alpha1.ReasonAccepted, "the rule is valid")
}

func (s *standing) enforced() metav1.Condition {
	not := func(reason, message string) metav1.Condition {
		return rulecache.Condition(v1alpha1.ConditionEnforced, false, reason, message)
	}
	also := ""
	if s.unheld() {
		also = "; " + unheld
	}
	switch {
	case s.gap != nil && s.gap.Reason == nodev1alpha1.ReasonPolicyOutdated: // also of a deleted rule, which waits for it
		return not(s.gap.Reason, s.gap.Message)
	case s.failure != nil:
		return not(v1alpha1.ReasonDeleting, "the rule is being deleted, and cannot go yet: "+text.Cut(s.failure.Error(), 512))
	case s.rule.Deleting:
		return not(v1alpha1.ReasonDeleting, "the rule is being deleted: its gates are being opened")
	case s.rule.Invalid != nil:
		return not(v1alpha1.ReasonNotAccepted, "the rule does nothing: see the condition Accepted")
	case !s.known:
		return not(nodev1alpha1.ReasonProgressing, "nobody has looked at the policy and the agents yet: wait")
	case s.gap != nil:
		return not(s.gap.Reason, s.gap.Message)
	case len(s.nodes) > 0:
		return not(v1alpha1.ReasonNoAgent, fmt.Sprintf("%s with %d selected pods %s no live podgate agent, and nobody opens the gates there: %s",
			text.Count(len(s.nodes), "node"), s.orphaned, has(len(s.nodes)), text.Cut(strings.Join(s.nodes, ", "), 256))+also)
	case s.agents == 0:
		return not(v1alpha1.ReasonNoAgent, "no podgate agent lives on any node, so nobody opens the gates that pods are created with: "+
			"install it (podgate.enabled=true of the chart), or see why it does not run: kubectl get daemonsets,pods -o wide -n "+podrule.OwnNamespace+also)
	case s.unheld():
		return not(v1alpha1.ReasonNoLatchImage, unheld+"; gates are put on pods all the same")
	case s.behind > 0:
		return not(nodev1alpha1.ReasonProgressing, fmt.Sprintf("%s %s not looked at pods with the rule as it is now: wait", text.Count(s.behind, "agent"), has(s.behind)))
	}
	return rulecache.Condition(v1alpha1.ConditionEnforced, true, v1alpha1.ReasonEnforced, "selected pods are created with the gate, and the agents of their nodes open it")
}

// unheld says that the start of pods is not held although the rule asks for it.
func (s *standing) unheld() bool { return s.rule.StartHold && !s.holdsStart }

const unheld = "the start of pods is not held: the manager was not told the image of the latch (--latch-image, podgate.enabled=true of the chart)"

func has(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

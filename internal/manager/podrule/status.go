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

// standing has everything that the status of a rule is computed from.
type standing struct {
	rule *podrule.Rule
	// gap is why pods are not created with the gate; nil if they are. It is valid only if known is true.
	gap        *admission.Gap
	known      bool
	holdsStart bool
	// others is the condition SoleController; nil if no other controller has a live lease.
	others *metav1.Condition
	// failure is why some gates of a deleted rule are still closed.
	failure error

	// tally counts the pods of all nodes, and orphaned those on nodes without a live agent. nodes are the names of these
	// nodes.
	tally    podrule.Tally
	orphaned int
	nodes    []string
	// agents is the number of live agents, and behind the number of those that have not evaluated the current version of
	// the rule.
	agents, behind int
}

// count adds the counts that agents report and those of nodes without a live agent.
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
	case s.gap != nil && s.gap.Reason == nodev1alpha1.ReasonPolicyOutdated: // also for a deleted rule, which waits for the administrator
		return not(s.gap.Reason, s.gap.Message)
	case s.failure != nil:
		return not(v1alpha1.ReasonDeleting, "the rule is being deleted; opening its gates failed and is retried: "+text.Cut(s.failure.Error(), 512))
	case s.rule.Deleting:
		return not(v1alpha1.ReasonDeleting, "the rule is being deleted; opening its gates")
	case s.rule.Invalid != nil:
		return not(v1alpha1.ReasonNotAccepted, "the rule is not enforced: see the condition Accepted")
	case !s.known:
		return not(nodev1alpha1.ReasonProgressing, "waiting for the first observation of the admission policy and the podgate agents")
	case s.gap != nil:
		return not(s.gap.Reason, s.gap.Message)
	case len(s.nodes) > 0:
		return not(v1alpha1.ReasonNoAgent, fmt.Sprintf("%s with %d selected pods %s no live podgate agent, so gates stay closed there: %s",
			text.Count(len(s.nodes), "node"), s.orphaned, has(len(s.nodes)), text.Cut(strings.Join(s.nodes, ", "), 256))+also)
	case s.agents == 0:
		return not(v1alpha1.ReasonNoAgent, "no podgate agent is live on any node, so the gates of pods stay closed: "+
			"install podgate (podgate.enabled=true in the chart), or find out why it does not run: kubectl get daemonsets,pods -o wide -n "+podrule.OwnNamespace+also)
	case s.unheld():
		return not(v1alpha1.ReasonNoLatchImage, unheld+"; pods are still created with the gate")
	case s.behind > 0:
		return not(nodev1alpha1.ReasonProgressing, fmt.Sprintf("waiting: %s %s not evaluated the current version of the rule", text.Count(s.behind, "agent"), has(s.behind)))
	}
	return rulecache.Condition(v1alpha1.ConditionEnforced, true, v1alpha1.ReasonEnforced, "selected pods are created with the gate, and the podgate agents of their nodes open it")
}

// unheld reports whether the rule sets startHold and the manager has no latch image.
func (s *standing) unheld() bool { return s.rule.StartHold && !s.holdsStart }

const unheld = "startHold has no effect: the manager has no latch image; set --latch-image (podgate.enabled=true in the chart)"

func has(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

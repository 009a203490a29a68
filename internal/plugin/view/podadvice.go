package view

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nodev1alpha1 "github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
)

// advice returns the next steps for the pod of the explanation, most important first.
func (b *PodBook) advice(s *PodExplanation) []string {
	var next []string
	switch s.State {
	case PodOver:
		return nil
	case PodWaiting:
		next = append(next, s.remedies()...)
		next = append(next, b.unheld(s)...)
	case PodUngated:
		next = append(next, b.recreate(s.Ungated)...)
	}
	if s.Latch.Problem != "" {
		next = append(next, fmt.Sprintf("The latch does not run (%s), so the pod's containers do not start: %s", strings.TrimSpace(s.Latch.Problem), s.describe()))
	}
	if len(s.OtherGates) > 0 {
		next = append(next, "Readiness gates that belong to no rule also keep the pod from being Ready; check the components that set them: "+strings.Join(s.OtherGates, ", "))
	} else if s.State == PodOpen && s.Ready != corev1.ConditionTrue {
		next = append(next, "Its gates are open, but the pod is not Ready for another reason: "+s.describe())
	}
	return next
}

// recreate returns the next steps for a pod that does not have the gate of some rules. Recreating the pod helps only
// after pods are created with the gate.
func (b *PodBook) recreate(rules []Ungated) []string {
	const recreate = "recreate the pod, for example with a rollout restart of its owner"
	var next []string
	for _, without := range rules {
		switch rule, is := without.Rule, enforcedOf(b.objects[without.Rule]); {
		case is == nil:
			next = append(next, fmt.Sprintf("No manager has observed the current generation of rule %s, so pods are created without its gate; check that a manager runs: %s. Then %s", rule, managers, recreate))
		case is.Reason == nodev1alpha1.ReasonProgressing:
			next = append(next, fmt.Sprintf("Wait until pods are created with the gate of rule %s: kubectl wait --for=condition=Enforced prr/%s. Then %s", rule, rule, recreate))
		case is.Status != metav1.ConditionTrue && !slices.Contains(gatedReasons, is.Reason):
			next = append(next, fmt.Sprintf("Pods are created without the gate of rule %s (%s): %s. After fixing that, %s", rule, is.Reason, is.Message, recreate))
		}
	}
	if len(next) == 0 {
		next = append(next, "To make the pod wait for its network, "+recreate)
	}
	return next
}

// gatedReasons are the reasons of rules that are not enforced although new pods get their gate.
var gatedReasons = []string{v1alpha1.ReasonNoAgent, v1alpha1.ReasonNoLatchImage}

// enforcedOf returns the condition Enforced for the current generation of the rule; nil if there is none.
func enforcedOf(rule *v1alpha1.PodReadinessRule) *metav1.Condition {
	is := meta.FindStatusCondition(rule.Status.Conditions, v1alpha1.ConditionEnforced)
	if is == nil || is.ObservedGeneration != rule.Generation {
		return nil
	}
	return is
}

// unheld returns a step if a rule sets startHold but the pod has no latch.
func (b *PodBook) unheld(s *PodExplanation) []string {
	if s.Latch.State != LatchNone {
		return nil
	}
	for i := range s.Chapters {
		for _, rule := range s.Chapters[i].Rules {
			if b.objects[rule].Spec.StartHold {
				return []string{fmt.Sprintf("Rule %s sets startHold, but this pod has no latch: the pod was created earlier, or the manager has no latch image (podgate.enabled=true in the chart, --latch-image). After setting the image, recreate the pod", rule)}
			}
		}
	}
	return nil
}

// remedies returns the next steps for a pod that waits.
func (s *PodExplanation) remedies() []string {
	switch chapter := &s.Chapters[0]; { // those for which it waits come first
	case s.Node == "":
		return []string{"The pod has no network until it is scheduled; check why it is not scheduled: " + s.describe()}
	case chapter.about:
		return []string{"The gate is about to open; if it stays closed, check that the manager and the agent of its node run: " + managers}
	case chapter.LatchClosed:
		return []string{fmt.Sprintf("The kubelet has not delivered the key of the latch, or has not reported that the latch ended; the agent of node %s writes the key again after 2, 4, 8, 16 and 32 s. "+
			"If the latch stays closed for longer, check the kubelet's log on that node, and kubectl logs %s -n %s -c %s", s.Node, s.Name, s.Namespace, v1alpha1.LatchName)}
	case s.Agent.gone() && s.Agent.Renewed.IsZero():
		return []string{fmt.Sprintf("No agent has renewed a Lease for node %s, so no agent opens the gate; the chart installs one per node with podgate.enabled=true; check that it runs there: %s", s.Node, s.agents())}
	case s.Agent.gone():
		return []string{fmt.Sprintf("The agent of node %s no longer renews its Lease and does not open the gate; check why it does not run: %s", s.Node, s.agents())}
	case chapter.Foreign:
		return append(s.foreign(&chapter.Gate), s.unreadyComponents(chapter.Components)...)
	case chapter.unchecked:
		return []string{"The pod has no network yet; its events show why: " + s.describe()}
	default:
		return s.unreadyComponents(chapter.Components)
	}
}

// foreign returns the next steps for a gate that another account set to True.
func (s *PodExplanation) foreign(g *Gate) []string {
	return []string{
		fmt.Sprintf("Gate %s was set to True by %s while a component is not ready. Configure that program to set a condition type of its own, and list that type in the rule as a podCondition component; "+
			"or let the API server reject the write: podgate.reserveGates=true in the chart", g.Name, g.writer()),
		fmt.Sprintf("If this pod must not wait for its network: kubectl label pod %s -n %s %s=%s", s.Name, s.Namespace, v1alpha1.OptOutLabel, v1alpha1.OptOut),
	}
}

// unreadyComponents returns a step for each component that is not ready.
func (s *PodExplanation) unreadyComponents(components []Component) []string {
	var next, unasked []string
	for i := range components {
		switch c := &components[i]; {
		case c.Result == ResultReady:
		case c.Result == ResultNotReady, c.Kind == podrule.NodeCondition:
			next = append(next, fmt.Sprintf("Component %s is not ready (%s); %s", c.Name, c.Why, s.whereToLook(c)))
		default:
			unasked = append(unasked, fmt.Sprintf("%s (%s)", c.Name, c.How))
		}
	}
	if len(unasked) > 0 {
		next = append(next, fmt.Sprintf("Only the agent of node %s can check %s; check that the agent runs: %s", s.Node, strings.Join(unasked, ", "), s.agents()))
	}
	if len(next) == 0 {
		next = append(next, "All components are ready; if the gate stays closed, check that the agent of its node runs: "+s.agents())
	}
	return next
}

// whereToLook returns where to check a component that is not ready.
func (s *PodExplanation) whereToLook(c *Component) string {
	switch {
	case c.needsStart && s.Latch.State == LatchWaiting:
		return "it cannot become ready: it requires started containers, and the latch lets containers start only after this gate opens. Set another gate in the rule with startHold or in rule " + c.Rule + ", and recreate the pod"
	case c.Kind == podrule.NodeCondition:
		return fmt.Sprintf("check the reporter of that node condition: kubectl describe node %s", s.Node)
	case c.unfilled:
		return "its rule uses an address family that this pod does not have: use {ip}, or change the selectors of the rule"
	case c.Kind == podrule.File:
		return fmt.Sprintf("check for the %s on node %s; the agent sees only the directories that the chart mounts (podgate.hostPaths)", c.How, s.Node)
	case c.Kind == podrule.HTTP:
		return fmt.Sprintf("request it on node %s itself: curl -ki %s", s.Node, shellQuoted(c.How))
	case c.Kind == podrule.Reach:
		return fmt.Sprintf("node %s itself must reach the pod: check the routes and the network plugin there: %s", s.Node, podsOn(s.Node))
	case c.Writer != "":
		return fmt.Sprintf("%s wrote that condition; check it on node %s: %s", c.Writer, s.Node, podsOn(s.Node))
	}
	return fmt.Sprintf("check it on node %s: %s", s.Node, podsOn(s.Node))
}

// shellQuoted quotes a word for a shell.
func shellQuoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// managers is the command that shows the managers and the agents.
const managers = "kubectl get pods -o wide -n " + podrule.OwnNamespace

func (s *PodExplanation) describe() string {
	return fmt.Sprintf("kubectl describe pod %s -n %s", s.Name, s.Namespace)
}

// agents returns the command that shows the agent of the pod's node.
func (s *PodExplanation) agents() string {
	return fmt.Sprintf("kubectl get pods -n %s -o wide --field-selector spec.nodeName=%s", podrule.OwnNamespace, s.Node)
}

func podsOn(node string) string {
	return "kubectl get pods -A -o wide --field-selector spec.nodeName=" + node
}

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

// advice is what to do next about the pod of the explanation, most important first.
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
		next = append(next, fmt.Sprintf("The latch does not run (%s), so the containers of the pod do not start: %s", strings.TrimSpace(s.Latch.Problem), s.describe()))
	}
	if len(s.OtherGates) > 0 {
		next = append(next, "Readiness gates that are of no rule keep it from being Ready too; ask who set them: "+strings.Join(s.OtherGates, ", "))
	} else if s.State == PodOpen && s.Ready != corev1.ConditionTrue {
		next = append(next, "Its gates are open, and it is not Ready for another reason: "+s.describe())
	}
	return next
}

// recreate says what to do about a pod that does not carry the gate of some rules. To create it anew is of
// no use while all pods are created without it.
func (b *PodBook) recreate(rules []Ungated) []string {
	const anew = "create it anew, as by a rollout restart of what owns it"
	var next []string
	for _, without := range rules {
		switch rule, is := without.Rule, enforcedOf(b.objects[without.Rule]); {
		case is == nil:
			next = append(next, fmt.Sprintf("No manager has seen rule %s as it is now, so pods are created without its gate; see whether one runs: %s. Then %s", rule, managers, anew))
		case is.Reason == nodev1alpha1.ReasonProgressing:
			next = append(next, fmt.Sprintf("Wait until pods are created with the gate of rule %s: kubectl wait --for=condition=Enforced prr/%s. Then %s", rule, rule, anew))
		case is.Status != metav1.ConditionTrue && !slices.Contains(gatedReasons, is.Reason):
			next = append(next, fmt.Sprintf("Pods are created without the gate of rule %s (%s): %s. When that is mended, %s", rule, is.Reason, is.Message, anew))
		}
	}
	if len(next) == 0 {
		next = append(next, "If it is to wait for its network, "+anew)
	}
	return next
}

// gatedReasons are those for which a rule is not enforced although its gate is put on pods.
var gatedReasons = []string{v1alpha1.ReasonNoAgent, v1alpha1.ReasonNoLatchImage}

// enforcedOf is what a manager says of the rule as it is now; nil if nothing.
func enforcedOf(rule *v1alpha1.PodReadinessRule) *metav1.Condition {
	is := meta.FindStatusCondition(rule.Status.Conditions, v1alpha1.ConditionEnforced)
	if is == nil || is.ObservedGeneration != rule.Generation {
		return nil
	}
	return is
}

// unheld says that the start of the pod is not held, if a rule asks for that.
func (b *PodBook) unheld(s *PodExplanation) []string {
	if s.Latch.State != LatchNone {
		return nil
	}
	for i := range s.Chapters {
		for _, rule := range s.Chapters[i].Rules {
			if b.objects[rule].Spec.StartHold {
				return []string{fmt.Sprintf("Rule %s asks for startHold, and this pod has no latch: it was created before, or the manager does not know the image of the latch (podgate.enabled=true of the chart, --latch-image). When it does, create the pod anew", rule)}
			}
		}
	}
	return nil
}

// remedies says what to do about a pod that waits.
func (s *PodExplanation) remedies() []string {
	switch chapter := &s.Chapters[0]; { // those for which it waits come first
	case s.Node == "":
		return []string{"It has no network before it is on a node; see why it is not scheduled: " + s.describe()}
	case chapter.about:
		return []string{"The gate opens in a moment; if it stays closed, see whether the manager and the agent of its node run: " + managers}
	case chapter.LatchClosed:
		return []string{fmt.Sprintf("The kubelet has not delivered the key of the latch, or has not reported that the latch ended; the agent of node %s writes the key again after 2, 4, 8, 16 and 32 s. "+
			"If it lasts longer, see the kubelet's log on that node, and kubectl logs %s -n %s -c %s", s.Node, s.Name, s.Namespace, v1alpha1.LatchName)}
	case s.Agent.gone() && s.Agent.Renewed.IsZero():
		return []string{fmt.Sprintf("No agent has said that it lives on node %s, so nobody opens the gate; the chart installs one on each node with podgate.enabled=true; see whether it runs there: %s", s.Node, s.agents())}
	case s.Agent.gone():
		return []string{fmt.Sprintf("No agent lives on node %s, so nobody opens the gate; see why it does not run there: %s", s.Node, s.agents())}
	case chapter.Foreign:
		return append(s.foreign(&chapter.Gate), s.unreadyComponents(chapter.Components)...)
	case chapter.unasked:
		return []string{"Its network is not there yet; the events of the pod tell why: " + s.describe()}
	default:
		return s.unreadyComponents(chapter.Components)
	}
}

// foreign says what to do about a gate that another account set to True.
func (s *PodExplanation) foreign(g *Gate) []string {
	return []string{
		fmt.Sprintf("Gate %s was set to True by %s while a component is missing. Let that program set a condition of its own type, and list it in the rule as a podCondition component; "+
			"or let the API server refuse it: podgate.reserveGates=true of the chart", g.Name, g.writer()),
		fmt.Sprintf("If this pod is not to wait for its network: kubectl label pod %s -n %s %s=%s", s.Name, s.Namespace, v1alpha1.OptOutLabel, v1alpha1.OptOut),
	}
}

// unreadyComponents names the components that have not said yes, and where to look.
func (s *PodExplanation) unreadyComponents(components []Component) []string {
	var next, unasked []string
	for i := range components {
		switch c := &components[i]; {
		case c.Says == SaysYes:
		case c.Says == SaysNo, c.Kind == podrule.NodeCondition:
			next = append(next, fmt.Sprintf("Component %s has not said yes (%s); %s", c.Name, c.Why, s.whereToLook(c)))
		default:
			unasked = append(unasked, fmt.Sprintf("%s (%s)", c.Name, c.How))
		}
	}
	if len(unasked) > 0 {
		next = append(next, fmt.Sprintf("Only the agent of node %s knows what is said by %s; see whether it runs: %s", s.Node, strings.Join(unasked, ", "), s.agents()))
	}
	if len(next) == 0 {
		next = append(next, "All components have said yes; if the gate stays closed, see whether the agent of its node runs: "+s.agents())
	}
	return next
}

// whereToLook is where a component that says no is mended.
func (s *PodExplanation) whereToLook(c *Component) string {
	switch {
	case c.needsStart && s.Latch.State == LatchWaiting:
		return "it never will: its latch lets containers start only when this gate opens. Give the rule that holds the start, or rule " + c.Rule + ", another gate, and create the pod anew"
	case c.Kind == podrule.NodeCondition:
		return fmt.Sprintf("see who reports that condition of node %s: kubectl describe node %s", s.Node, s.Node)
	case c.unfilled:
		return "its rule names an address of a family that this pod does not have: use {ip} there, or let the rule select other pods"
	case c.Kind == podrule.File:
		return fmt.Sprintf("look for the %s on node %s; the agent sees only directories that the chart mounts for it (podgate.hostPaths)", c.How, s.Node)
	case c.Kind == podrule.HTTP:
		return fmt.Sprintf("ask it on node %s itself: curl -ki %s", s.Node, shellQuoted(c.How))
	case c.Kind == podrule.Reach:
		return fmt.Sprintf("node %s itself must reach the pod: see the routes and the network plugin there: %s", s.Node, podsOn(s.Node))
	case c.Writer != "":
		return fmt.Sprintf("%s wrote that, look at it on node %s: %s", c.Writer, s.Node, podsOn(s.Node))
	}
	return fmt.Sprintf("look at it on node %s: %s", s.Node, podsOn(s.Node))
}

// shellQuoted is a word as a shell takes it, whatever is in it.
func shellQuoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// managers is the command that shows the managers, and the agents.
const managers = "kubectl get pods -o wide -n " + podrule.OwnNamespace

func (s *PodExplanation) describe() string {
	return fmt.Sprintf("kubectl describe pod %s -n %s", s.Name, s.Namespace)
}

// agents is the command that shows the agent of the pod's node.
func (s *PodExplanation) agents() string {
	return fmt.Sprintf("kubectl get pods -n %s -o wide --field-selector spec.nodeName=%s", podrule.OwnNamespace, s.Node)
}

func podsOn(node string) string {
	return "kubectl get pods -A -o wide --field-selector spec.nodeName=" + node
}

package view

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/gating"
)

// advice is what to do next, most important first.
func (s *PodStory) advice() []string {
	var next []string
	switch s.State {
	case PodOver:
		return nil
	case PodWaiting:
		next = append(next, s.mend())
	case PodUngated:
		next = append(next, "If it is to wait for its network, create it anew, as by a rollout restart of what owns it")
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

// mend says what to do about a pod that waits, in one sentence.
func (s *PodStory) mend() string {
	switch chapter := &s.Chapters[0]; { // closed ones come first
	case s.Node == "":
		return "It has no network before it is on a node; see why it is not scheduled: " + s.describe()
	case chapter.about:
		return "The gate opens in a moment; if it stays closed, see whether the manager and the agent of its node run: kubectl get pods -o wide -n " + gating.OwnNamespace
	case s.Agent.gone():
		return fmt.Sprintf("No agent lives on node %s, so nobody opens the gate; see why it does not run there: %s", s.Node, s.agents())
	case chapter.unasked:
		return "Its network is not there yet; the events of the pod tell why: " + s.describe()
	default:
		return s.blame(chapter.Components)
	}
}

// blame names the first component that has not said yes, and where to look.
func (s *PodStory) blame(components []Component) string {
	for i := range components {
		c := &components[i]
		switch {
		case c.Says == SaysYes:
			continue
		case c.Kind == gating.NodeCondition:
			return fmt.Sprintf("Component %s has not said yes (%s); see who reports that condition of node %s: kubectl describe node %s", c.Name, c.Why, s.Node, s.Node)
		case c.Says == SaysUnknown:
			return fmt.Sprintf("What component %s says (%s), only the agent of node %s knows; see whether it runs: %s", c.Name, c.How, s.Node, s.agents())
		case c.Writer != "":
			return fmt.Sprintf("Component %s has not said yes (%s); %s wrote that, look at it on node %s: %s", c.Name, c.Why, c.Writer, s.Node, podsOn(s.Node))
		}
		return fmt.Sprintf("Component %s has not said yes (%s); look at it on node %s: %s", c.Name, c.Why, s.Node, podsOn(s.Node))
	}
	return "All components have said yes; if the gate stays closed, see whether the agent of its node runs: " + s.agents()
}

func (s *PodStory) describe() string {
	return fmt.Sprintf("kubectl describe pod %s -n %s", s.Name, s.Namespace)
}

// agents is the command that shows the agent of the pod's node.
func (s *PodStory) agents() string {
	return fmt.Sprintf("kubectl get pods -n %s -o wide --field-selector spec.nodeName=%s", gating.OwnNamespace, s.Node)
}

func podsOn(node string) string {
	return "kubectl get pods -A -o wide --field-selector spec.nodeName=" + node
}

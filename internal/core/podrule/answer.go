package podrule

import (
	"cmp"
	"fmt"
	"time"
)

// outrun is by how much a component may be ahead of the kubelet: it can report ready while the kubelet still creates the
// sandbox. A result that is older than that was for the previous sandbox.
const outrun = 10 * time.Second

// probe returns the probe of the component on the pod's node; false if the result is known without it.
func (f *facts) probe(c *Component) (Probe, bool) {
	if f.answers == nil || c.Unfilled(f.Pod) != "" {
		return Probe{}, false
	}
	return c.probe(f.Pod)
}

// answer returns the result of a component for the pod, and false if it has not been probed yet.
func (f *facts) answer(c *Component, probe Probe, asks bool) (Answer, bool) {
	switch {
	case f.answers == nil:
		return Answer{Why: "the node has no live podgate agent to probe it"}, false
	case c.Kind == PodCondition:
		return final(f.podCondition(c)), true
	case c.Kind == NodeCondition:
		return final(f.nodeCondition(c)), true
	case !asks:
		return Answer{Why: cmp.Or(c.Unfilled(f.Pod), "this version of podgate cannot probe it")}, true
	}
	answer, known := f.answers(probe)
	if !known {
		answer = Answer{Why: "not probed yet"}
	}
	return answer, known
}

// final returns a result that was read from the API. One negative result closes an open gate.
func final(answer Answer) Answer {
	if !answer.Yes {
		answer.Noes = Refusals
	}
	return answer
}

func (f *facts) podCondition(c *Component) Answer {
	is := condition(f.Pod, c.condition)
	switch {
	case is == nil:
		return Answer{Why: fmt.Sprintf("the pod has no condition %s", c.condition)}
	case is.Status != c.status:
		return Answer{Why: statusWords(c.condition, is.Status, is.Reason)}
	case f.hadSandbox && latest(is.LastTransitionTime.Time, is.LastProbeTime.Time).Add(outrun).Before(f.sandbox.Since):
		return Answer{Why: fmt.Sprintf("condition %s is older than the pod's sandbox", c.condition)}
	}
	return Answer{Yes: true}
}

func (f *facts) nodeCondition(c *Component) Answer {
	is := nodeCondition(&f.Node, c.condition)
	switch {
	case is == nil:
		return Answer{Why: fmt.Sprintf("the node has no condition %s", c.condition)}
	case is.Status != c.status:
		return Answer{Why: "node " + statusWords(c.condition, is.Status, is.Reason)}
	case latest(is.LastTransitionTime.Time, is.LastHeartbeatTime.Time).Before(f.Node.Booted):
		return Answer{Why: fmt.Sprintf("node condition %s is older than the node's last boot", c.condition)}
	}
	return Answer{Yes: true}
}

// latest is the later of two times.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

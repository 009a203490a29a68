package podrule

import (
	"fmt"
	"time"
)

// outrun is by how much a component may be ahead of the kubelet: it can say yes while the sandbox is
// still being made. What it said longer before a second or later sandbox was of the one before.
const outrun = 10 * time.Second

// answer is what a component says of the pod, and false if nobody has asked it yet.
func (d *decider) answer(c *Component) (Answer, bool) {
	if d.answers == nil {
		return Answer{Why: "the node has no live agent to ask it"}, false
	}
	switch c.Kind {
	case PodCondition:
		return told(d.podCondition(c)), true
	case NodeCondition:
		return told(d.nodeCondition(c)), true
	}
	if lacks := c.Unfilled(d.Pod); lacks != "" {
		return Answer{Why: lacks}, true
	}
	probe, ok := c.probe(d.Pod)
	if !ok {
		return Answer{Why: "this version does not know how to ask it"}, true
	}
	d.Probes = append(d.Probes, probe)
	answer, known := d.answers(probe)
	if !known {
		answer = Answer{Why: "not asked yet"}
	}
	return answer, known
}

// told is an answer that was given without being asked for: it counts at once.
func told(answer Answer) Answer {
	if !answer.Yes {
		answer.Noes = Refusals
	}
	return answer
}

func (d *decider) podCondition(c *Component) Answer {
	is := condition(d.Pod, c.condition)
	switch {
	case is == nil:
		return Answer{Why: fmt.Sprintf("nobody has set condition %s", c.condition)}
	case is.Status != c.status:
		return Answer{Why: statusWords(c.condition, is.Status, is.Reason)}
	case d.again && latest(is.LastTransitionTime.Time, is.LastProbeTime.Time).Add(outrun).Before(d.sandbox.Since):
		return Answer{Why: fmt.Sprintf("condition %s is from before this sandbox", c.condition)}
	}
	return Answer{Yes: true}
}

func (d *decider) nodeCondition(c *Component) Answer {
	is := nodeCondition(&d.Node, c.condition)
	switch {
	case is == nil:
		return Answer{Why: fmt.Sprintf("the node has no condition %s", c.condition)}
	case is.Status != c.status:
		return Answer{Why: "node " + statusWords(c.condition, is.Status, is.Reason)}
	case latest(is.LastTransitionTime.Time, is.LastHeartbeatTime.Time).Before(d.Node.Booted):
		return Answer{Why: fmt.Sprintf("node condition %s is from before the node's boot", c.condition)}
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

package podrule

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// SandboxSince is since when the pod has had a sandbox; zero if it has none.
func SandboxSince(pod *corev1.Pod) time.Time { return sandboxOf(pod, &Node{}).Since }

// Yes is when a component became ready.
type Yes struct {
	Rule, Component string
	At              time.Time
}

// YesTimes returns when the components of an open gate became ready, as far as it is known; asked has the times of probes.
// A node condition has no time: it was met before.
func YesTimes(pod *corev1.Pod, v *Verdict, asked map[Probe]time.Time) []Yes {
	var times []Yes
	for _, rule := range v.Rules {
		for i := range rule.Components {
			c := &rule.Components[i]
			if at := c.yesTime(pod, asked); !at.IsZero() {
				times = append(times, Yes{Rule: rule.Name, Component: c.Name, At: at})
			}
		}
	}
	return times
}

func (c *Component) yesTime(pod *corev1.Pod, asked map[Probe]time.Time) time.Time {
	if c.Kind == PodCondition {
		if is := condition(pod, c.condition); is != nil {
			return is.LastTransitionTime.Time
		}
		return time.Time{}
	}
	probe, _ := c.probe(pod)
	return asked[probe]
}

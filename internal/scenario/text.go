package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Text describes the step.
func (s *Step) Text() string {
	switch {
	case s.Pause != nil:
		return fmt.Sprintf("%v pass", s.Pause.Duration)
	case s.Apply != nil && s.Apply.Refused != "":
		return "the API server is to refuse " + s.Apply.source()
	case s.Apply != nil:
		return "apply " + s.Apply.source()
	case s.Delete != nil:
		return "delete rule " + s.Delete.Rule
	case s.Join != nil:
		return s.Join.text()
	case s.Deploy != nil:
		return fmt.Sprintf("deploy %s: %d pods", s.Deploy.Name, s.Deploy.Pods)
	case s.DaemonSet != nil:
		return s.DaemonSet.text()
	case s.Component != nil:
		return fmt.Sprintf("%s on %s is %s", s.Component.Name, strings.Join(s.Component.Nodes, ", "), healthText[s.Component.Is])
	case s.Reporters != nil:
		return s.Reporters.text()
	case s.Reboot != nil:
		return s.Reboot.text()
	case s.NewSandbox != nil:
		return fmt.Sprintf("the pods of %s on %s get a new sandbox", s.NewSandbox.Deploy, strings.Join(s.NewSandbox.Nodes, ", "))
	case s.Expect != nil:
		return s.Expect.Text()
	}
	return s.Say
}

var healthText = map[Health]string{Up: "up", Down: "down", Hangs: "hanging"}

func (a *Apply) source() string {
	if a.File != "" {
		return a.File
	}
	for line := range strings.Lines(a.Manifest) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "name:"); found {
			return "rule " + strings.TrimSpace(name)
		}
	}
	return "a manifest"
}

func (j *Join) text() string {
	names := j.names()
	if len(names) == 1 {
		return "node " + names[0] + " joins"
	}
	return fmt.Sprintf("%d nodes join: %s to %s", len(names), names[0], names[len(names)-1])
}

func (d *DaemonSet) text() string {
	if d.Reports == "" {
		return "restart DaemonSet " + d.Name
	}
	return "apply DaemonSet " + d.Name + ", which reports " + d.Reports
}

func (r *Reporters) text() string {
	if r.Run {
		return "reporters start on " + strings.Join(r.Nodes, ", ")
	}
	return "reporters stop on " + strings.Join(r.Nodes, ", ")
}

func (r *Reboot) text() string {
	text := "reboot " + strings.Join(r.Nodes, ", ")
	if r.Takes == nil {
		return text + ", too quickly to be noticed"
	}
	return fmt.Sprintf("%s, away for %v", text, r.Takes.Duration)
}

// Text describes what is expected.
func (e *Expect) Text() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if e.Held != nil {
		add("%s held", e.amount(e.Held))
	}
	if e.Released != nil {
		add("%s released", e.amount(e.Released))
	}
	if e.Waiting != nil {
		add("%s waiting", counted(*e.Waiting, "pod"))
	}
	if e.Running != nil {
		add("%s running", counted(*e.Running, "pod"))
	}
	parts = append(parts, e.gates()...)
	if e.Rule != "" {
		add("%s", strings.TrimSpace("rule "+e.Rule+" "+strings.TrimSpace("is "+e.Standing)))
	}
	if e.Says != "" {
		add("it says %q", e.Says)
	}
	if e.TaintedAtCreation != nil {
		add("a new node is tainted at creation")
	}
	if e.Tolerated != nil {
		add("a DaemonSet gets a toleration")
	}
	if e.Last != nil {
		add("on %s %s was the last component to become ready", e.Last.Node, e.Last.Component)
	}
	if e.Why != nil {
		add("the explanation of %s contains %q", e.Why.subject(), e.Why.Contains)
	}
	text := strings.Join(parts, ", ")
	if stable := e.StableFor(); stable > 0 {
		text += fmt.Sprintf(", and so it stays for %v", stable)
	}
	return text
}

// gates describe what is expected of pods and their gates.
func (e *Expect) gates() []string {
	var parts []string
	count := func(n *int, what string) {
		if n != nil {
			parts = append(parts, counted(*n, "pod")+" "+what)
		}
	}
	if e.Pods != nil {
		count(e.Pods.Gated, "with a gate")
		count(e.Pods.Waiting, "with a closed gate")
		count(e.Pods.Ready, "ready")
		for _, reason := range slices.Sorted(maps.Keys(e.Pods.Reasons)) {
			parts = append(parts, fmt.Sprintf("%s because of %s", counted(e.Pods.Reasons[reason], "gate"), reason))
		}
	}
	if len(parts) > 0 && len(e.Nodes) > 0 {
		parts[len(parts)-1] += " on " + strings.Join(e.Nodes, ", ")
	}
	if e.GatedAtCreation != nil {
		parts = append(parts, "a new pod gets a gate at creation")
	}
	return parts
}

// subject reads as in "worker-1" or "a pod of shop on worker-1".
func (w *Why) subject() string {
	if w.Pod == "" {
		return w.Node
	}
	return "a pod of " + w.Pod + " on " + w.Node
}

// amount reads as in "3 nodes" or "all of worker-*".
func (e *Expect) amount(a *Amount) string {
	switch {
	case len(e.Nodes) > 0:
		return a.String() + " of " + strings.Join(e.Nodes, ", ")
	case a.All:
		return "all nodes"
	}
	return counted(a.N, "node")
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

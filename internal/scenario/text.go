package scenario

import (
	"fmt"
	"strings"
)

// Text describes the step.
func (s *Step) Text() string { //nolint:gocyclo // one case per kind of step
	on := func(nodes []string) string { return strings.Join(nodes, ", ") }
	switch {
	case s.Pause != nil:
		return fmt.Sprintf("wait %v", s.Pause.Duration)
	case s.Apply != nil && s.Apply.Refused != "":
		return "apply " + s.Apply.source() + ", which the API server must reject"
	case s.Apply != nil:
		return "apply " + s.Apply.source()
	case s.Delete != nil:
		return "delete rule " + s.Delete.Rule
	case s.Join != nil && s.Join.Count != nil && *s.Join.Count > 1:
		return fmt.Sprintf("%d nodes join: %s-1 to %s-%d", *s.Join.Count, s.Join.Name, s.Join.Name, *s.Join.Count)
	case s.Join != nil:
		return "node " + s.Join.names()[0] + " joins"
	case s.Deploy != nil:
		return fmt.Sprintf("deploy %s: %d pods", s.Deploy.Name, s.Deploy.Pods)
	case s.DaemonSet != nil && s.DaemonSet.Reports == "":
		return "restart DaemonSet " + s.DaemonSet.Name
	case s.DaemonSet != nil:
		return "apply DaemonSet " + s.DaemonSet.Name + ", which reports " + s.DaemonSet.Reports
	case s.Component != nil:
		return fmt.Sprintf("%s on %s is %s", s.Component.Name, on(s.Component.Nodes), healthText[s.Component.Is])
	case s.Reporters != nil && s.Reporters.Run:
		return "start reporters on " + on(s.Reporters.Nodes)
	case s.Reporters != nil:
		return "stop reporters on " + on(s.Reporters.Nodes)
	case s.Reboot != nil && s.Reboot.Takes == nil:
		return "reboot " + on(s.Reboot.Nodes) + "; Ready does not change"
	case s.Reboot != nil:
		return fmt.Sprintf("reboot %s; Ready is Unknown for %v", on(s.Reboot.Nodes), s.Reboot.Takes.Duration)
	case s.NewSandbox != nil:
		return fmt.Sprintf("the pods of %s on %s get a new sandbox", s.NewSandbox.Deploy, on(s.NewSandbox.Nodes))
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

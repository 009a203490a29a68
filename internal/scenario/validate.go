package scenario

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Names of nodes, components and Deployments become names of objects and of files.
var nameForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)

const maxNodes = 1000

func (s *Scenario) validate() error {
	switch {
	case s.Title == "":
		return errors.New("title is empty, must be a short name, e.g. title: The CNI guide")
	case s.About == "":
		return errors.New("about is empty, must say in a sentence what there is to see")
	case len(s.Steps) == 0:
		return errors.New("steps is empty, must have at least one, e.g. say: Hello")
	}
	for name, component := range s.Components {
		if err := component.validate(name); err != nil {
			return err
		}
	}
	for i, invariant := range s.Always {
		if invariant.Text() == "" {
			return fmt.Errorf("always[%d] is %q, must be %s, %s, %s or %s", i, invariant, NoEarlyPod, ForeignTaintsStay, HeldBeforeBack, NoEarlyReady)
		}
	}
	v := &validation{Scenario: s}
	for i := range s.Steps {
		if err := v.step(&s.Steps[i]); err != nil {
			return fmt.Errorf("steps[%d]%w", i, err)
		}
	}
	return nil
}

// minHeartbeat is the shortest that a reporter takes.
const minHeartbeat = time.Second

func (c Component) validate(name string) error {
	switch {
	case !nameForm.MatchString(name):
		return fmt.Errorf("components has the name %q, must be small letters, digits and -, e.g. calico", name)
	case (c.Condition == "") == (c.PodCondition == ""):
		return fmt.Errorf("components.%s must have either condition, the type of a node condition, e.g. example.com/NetworkReady, or podCondition, e.g. policy.example.com/programmed", name)
	case c.PodCondition != "" && (c.Interval != nil || c.FailureThreshold != nil || c.HoldDown != nil || c.Heartbeat != nil):
		return fmt.Errorf("components.%s has podCondition, for which there is no reporter: must have no interval, failureThreshold, holdDown and heartbeat", name)
	case c.Condition != "" && c.Takes != nil:
		return fmt.Errorf("components.%s.takes is for podCondition, must be absent", name)
	case c.Heartbeat != nil && c.Heartbeat.Duration < minHeartbeat:
		return fmt.Errorf("components.%s.heartbeat is %v, must be at least %v, e.g. 15s", name, c.Heartbeat.Duration, minHeartbeat)
	}
	return nil
}

// validation knows what was said before a step.
type validation struct {
	*Scenario
	joined      []string
	daemonSets  []string
	deployments []string
}

func (v *validation) step(step *Step) error {
	var set []string
	value := reflect.ValueOf(*step)
	for i := range value.NumField() {
		if !value.Field(i).IsZero() {
			set = append(set, jsonName(value.Type().Field(i)))
		}
	}
	if len(set) != 1 {
		return fmt.Errorf(" has %d fields (%s), must have exactly one of %s", len(set), strings.Join(set, ", "), strings.Join(fieldsAt("steps"), ", "))
	}
	check := map[string]func(*Step) error{
		"apply": v.apply, "delete": v.delete, "join": v.join, "deploy": v.deploy, "daemonSet": v.daemonSet,
		"component": v.change, "reporters": v.reporters, "reboot": v.reboot, "newSandbox": v.newSandbox, "expect": v.expect,
	}[set[0]]
	if check == nil {
		return nil
	}
	if err := check(step); err != nil {
		return fmt.Errorf(".%s%w", set[0], err)
	}
	return nil
}

func (v *validation) apply(step *Step) error {
	if a := step.Apply; (a.File == "") == (a.Manifest == "") {
		return errors.New(" must have either file or manifest, e.g. file: examples/cni-readiness/network-readiness-rule.yaml")
	}
	if file := step.Apply.File; file != "" && (path.IsAbs(file) || path.Clean(file) != file || strings.HasPrefix(file, "..")) {
		return fmt.Errorf(".file is %q, must be a path from the root of the repository", file)
	}
	return nil
}

func (v *validation) delete(step *Step) error {
	if step.Delete.Rule == "" {
		return errors.New(".rule is empty, must be the name of a rule")
	}
	return nil
}

func (v *validation) join(step *Step) error {
	join := step.Join
	if !nameForm.MatchString(join.Name) {
		return fmt.Errorf(".name is %q, must be small letters, digits and -, e.g. worker", join.Name)
	}
	if join.Count != nil && (*join.Count < 1 || *join.Count > maxNodes) {
		return fmt.Errorf(".count is %d, must be from 1 to %d", *join.Count, maxNodes)
	}
	if join.Runs != nil {
		for _, name := range *join.Runs {
			if err := v.known(name); err != nil {
				return fmt.Errorf(".runs %w", err)
			}
		}
	}
	for _, taint := range join.Taints {
		if !taintForm.MatchString(taint) {
			return fmt.Errorf(".taints has %q, must be key=value:effect, e.g. example.com/team=blue:PreferNoSchedule", taint)
		}
	}
	for _, name := range join.names() {
		if slices.Contains(v.joined, name) {
			return fmt.Errorf(": node %s has joined before", name)
		}
	}
	v.joined = append(v.joined, join.names()...)
	return nil
}

var taintForm = regexp.MustCompile(`^[^=:]+=[^=:]*:(NoSchedule|PreferNoSchedule|NoExecute)$`)

func (v *validation) known(component string) error {
	if _, known := v.Components[component]; !known {
		return fmt.Errorf("names the component %q, must be one of %s", component, strings.Join(slices.Sorted(maps.Keys(v.Components)), ", "))
	}
	return nil
}

// nodes returns an error if a pattern fits no node that has joined before this step.
func (v *validation) nodes(patterns []string) error {
	if len(patterns) == 0 {
		return errors.New(".nodes is empty, must be names or patterns, e.g. [worker-*]")
	}
	for _, pattern := range patterns {
		if len(matching([]string{pattern}, v.joined)) == 0 {
			return fmt.Errorf(".nodes has %q, which fits no node that has joined before", pattern)
		}
	}
	return nil
}

func (v *validation) deploy(step *Step) error {
	if !nameForm.MatchString(step.Deploy.Name) {
		return fmt.Errorf(".name is %q, must be small letters, digits and -, e.g. shop", step.Deploy.Name)
	}
	if step.Deploy.Pods < 1 {
		return fmt.Errorf(".pods is %d, must be at least 1", step.Deploy.Pods)
	}
	if per := step.Deploy.PerNode; per != nil && (*per < 1 || *per > 100) {
		return fmt.Errorf(".perNode is %d, must be from 1 to 100", *per)
	}
	v.deployments = append(v.deployments, step.Deploy.Name)
	return nil
}

// deployed returns an error if a name is not one of a Deployment of a step before.
func (v *validation) deployed(name string) error {
	if !slices.Contains(v.deployments, name) {
		return fmt.Errorf("is %q, must be the name of a deploy before, e.g. shop", name)
	}
	return nil
}

// daemonSet makes one of a new name, and restarts one that is there.
func (v *validation) daemonSet(step *Step) error {
	d := step.DaemonSet
	switch there := slices.Contains(v.daemonSets, d.Name); {
	case !nameForm.MatchString(d.Name):
		return fmt.Errorf(".name is %q, must be small letters, digits and -, e.g. network-agent", d.Name)
	case there && (d.Reports != "" || len(d.Labels) > 0):
		return fmt.Errorf(": %s is there already and is only restarted, must have no reports and no labels", d.Name)
	case !there && d.Reports == "":
		return errors.New(".reports is empty, must be the type of a node condition, e.g. example.com/NetworkReady")
	}
	v.daemonSets = append(v.daemonSets, d.Name)
	return nil
}

func (v *validation) change(step *Step) error {
	if err := v.known(step.Component.Name); err != nil {
		return fmt.Errorf(" %w", err)
	}
	if healthText[step.Component.Is] == "" {
		return fmt.Errorf(".is is %q, must be %s, %s or %s", step.Component.Is, Up, Down, Hangs)
	}
	if step.Component.Is == Hangs && v.Components[step.Component.Name].PodCondition != "" {
		return fmt.Errorf(".is is %q, must be %s or %s: a component that sets podCondition has no endpoint", Hangs, Up, Down)
	}
	return v.nodes(step.Component.Nodes)
}

func (v *validation) reporters(step *Step) error { return v.nodes(step.Reporters.Nodes) }

// minAway is the shortest absence that is noticed.
const minAway = time.Second

func (v *validation) reboot(step *Step) error {
	if takes := step.Reboot.Takes; takes != nil && takes.Duration < minAway {
		return fmt.Errorf(".takes is %v, must be at least %v, e.g. 5s, or absent for a reboot that Kubernetes does not notice", takes.Duration, minAway)
	}
	return v.nodes(step.Reboot.Nodes)
}

// newSandbox takes a second at least: the times of conditions have whole seconds, and two sandboxes
// must differ in theirs.
func (v *validation) newSandbox(step *Step) error {
	s := step.NewSandbox
	if err := v.deployed(s.Deploy); err != nil {
		return fmt.Errorf(".deploy %w", err)
	}
	if takes := s.Takes; takes != nil && takes.Duration < minAway {
		return fmt.Errorf(".takes is %v, must be at least %v, e.g. 3s", takes.Duration, minAway)
	}
	return v.nodes(s.Nodes)
}

func (v *validation) expect(step *Step) error {
	e := step.Expect
	timeless := *e
	timeless.For = nil
	if timeless.Text() == "" {
		return errors.New(" expects nothing, must name at least one of held, released, running, waiting, pods, rule, taintedAtCreation, gatedAtCreation, tolerated, last, why")
	}
	if (e.Standing != "" || e.Says != "") != (e.Rule != "") {
		return errors.New(" must have rule together with standing or says, e.g. rule: network-readiness-rule and standing: Enforced")
	}
	if err := errors.Join(v.why(e.Why), v.last(e.Last)); err != nil {
		return err
	}
	if len(e.Nodes) > 0 {
		return v.nodes(e.Nodes)
	}
	return nil
}

func (v *validation) why(why *Why) error {
	if why == nil {
		return nil
	}
	if why.Contains == "" {
		return errors.New(".why.contains is empty, must be a part of the explanation")
	}
	if why.Pod != "" {
		if err := v.deployed(why.Pod); err != nil {
			return fmt.Errorf(".why.pod %w", err)
		}
	}
	return v.here(".why.node", why.Node)
}

func (v *validation) last(last *Last) error {
	if last == nil {
		return nil
	}
	if last.Component == "" {
		return errors.New(".last.component is empty, must be the name of a component in the rule, e.g. policy")
	}
	return v.here(".last.node", last.Node)
}

// here returns an error if a node has not joined before this step.
func (v *validation) here(field, node string) error {
	if !slices.Contains(v.joined, node) {
		return fmt.Errorf("%s is %q, which has not joined before", field, node)
	}
	return nil
}

package scenario

import (
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

var taintForm = regexp.MustCompile(`^[^=:]+=[^=:]*:(NoSchedule|PreferNoSchedule|NoExecute)$`)

const (
	maxNodes   = 1000
	maxPerNode = 100
	// minHeartbeat is the minimum that a reporter accepts.
	minHeartbeat = time.Second
	// minAway is the minimum absence: condition times have a resolution of one second, and two sandboxes
	// must have different times.
	minAway = time.Second
)

// validation checks steps in order, and keeps the first error.
type validation struct {
	*Scenario
	place string // the current path, e.g. steps[2].join
	err   error

	// Names that previous steps introduced.
	joined, daemonSets, deployments []string
}

func (s *Scenario) validate() error {
	v := &validation{Scenario: s}
	v.require(s.Title != "", "title is empty, must be a short name, e.g. title: The CNI guide")
	v.require(s.About != "", "about is empty, must describe the scenario in a sentence")
	v.require(len(s.Steps) > 0, "steps is empty, must have at least one step, e.g. say: Hello")
	for _, name := range slices.Sorted(maps.Keys(s.Components)) {
		v.require(nameForm.MatchString(name), "components has the name %q, must consist of lower-case letters, digits and -, e.g. calico", name)
		v.place = "components." + name
		v.component(s.Components[name])
	}
	v.place = ""
	for i, invariant := range s.Always {
		v.require(invariant.Text() != "", "always[%d] is %q, must be %s, %s, %s or %s", i, invariant, NoEarlyPod, ForeignTaintsStay, HeldBeforeBack, NoEarlyReady)
	}
	for i := range s.Steps {
		if v.err == nil {
			v.step(fmt.Sprintf("steps[%d]", i), &s.Steps[i])
		}
	}
	return v.err
}

// require records an error at the current path, unless the value is right or there is an earlier error.
func (v *validation) require(right bool, wrong string, args ...any) {
	if v.err == nil && !right {
		v.err = fmt.Errorf(v.place+wrong, args...)
	}
}

func (v *validation) component(c Component) {
	v.require((c.Condition == "") != (c.PodCondition == ""), " must have either condition, the type of a node condition, e.g. example.com/NetworkReady, or podCondition, e.g. policy.example.com/programmed")
	v.require(c.PodCondition == "" || c.Interval == nil && c.FailureThreshold == nil && c.HoldDown == nil && c.Heartbeat == nil,
		" has podCondition, which no reporter reports: must have no interval, failureThreshold, holdDown and heartbeat")
	v.require(c.Condition == "" || c.Takes == nil, ".takes applies only to podCondition, must be absent")
	v.require(c.Heartbeat.or(minHeartbeat) >= minHeartbeat, ".heartbeat is %v, must be at least %v, e.g. 15s", c.Heartbeat.or(0), minHeartbeat)
}

func (v *validation) step(place string, step *Step) {
	var set []string
	value := reflect.ValueOf(*step)
	for i := range value.NumField() {
		if !value.Field(i).IsZero() {
			set = append(set, jsonName(value.Type().Field(i)))
		}
	}
	v.place = place
	v.require(len(set) == 1, " has %d fields (%s), must have exactly one of %s", len(set), strings.Join(set, ", "), strings.Join(fieldsAt("steps"), ", "))
	if v.err != nil {
		return
	}
	v.place += "." + set[0]
	switch {
	case step.Apply != nil:
		v.apply(step.Apply)
	case step.Delete != nil:
		v.require(step.Delete.Rule != "", ".rule is empty, must be the name of a rule")
	case step.Join != nil:
		v.join(step.Join)
	case step.Deploy != nil:
		v.deploy(step.Deploy)
	case step.DaemonSet != nil:
		v.daemonSet(step.DaemonSet)
	case step.Component != nil:
		v.change(step.Component)
	case step.Reporters != nil:
		v.nodes(step.Reporters.Nodes)
	case step.Reboot != nil:
		v.require(step.Reboot.Takes.or(minAway) >= minAway, ".takes is %v, must be at least %v, e.g. 5s, or absent for a reboot that does not change Ready", step.Reboot.Takes.or(0), minAway)
		v.nodes(step.Reboot.Nodes)
	case step.NewSandbox != nil:
		v.deployed(".deploy", step.NewSandbox.Deploy)
		v.require(step.NewSandbox.Takes.or(minAway) >= minAway, ".takes is %v, must be at least %v, e.g. 3s", step.NewSandbox.Takes.or(0), minAway)
		v.nodes(step.NewSandbox.Nodes)
	case step.Expect != nil:
		v.expect(step.Expect)
	}
}

func (v *validation) apply(a *Apply) {
	v.require((a.File == "") != (a.Manifest == ""), " must have either file or manifest, e.g. file: examples/cni-readiness/network-readiness-rule.yaml")
	v.require(a.File == "" || !path.IsAbs(a.File) && path.Clean(a.File) == a.File && !strings.HasPrefix(a.File, ".."), ".file is %q, must be a path from the root of the repository", a.File)
}

func (v *validation) join(join *Join) {
	v.name(join.Name, "worker")
	if join.Count != nil {
		v.require(*join.Count >= 1 && *join.Count <= maxNodes, ".count is %d, must be from 1 to %d", *join.Count, maxNodes)
	}
	if join.Runs != nil {
		for _, name := range *join.Runs {
			v.known(".runs", name)
		}
	}
	for _, taint := range join.Taints {
		v.require(taintForm.MatchString(taint), ".taints has %q, must be key=value:effect, e.g. example.com/team=blue:PreferNoSchedule", taint)
	}
	if v.err != nil {
		return // count may be too large
	}
	for _, name := range join.names() {
		v.require(!slices.Contains(v.joined, name), ": node %s has already joined", name)
	}
	v.joined = append(v.joined, join.names()...)
}

func (v *validation) deploy(d *Deploy) {
	v.name(d.Name, "shop")
	v.require(d.Pods >= 1, ".pods is %d, must be at least 1", d.Pods)
	if d.PerNode != nil {
		v.require(*d.PerNode >= 1 && *d.PerNode <= maxPerNode, ".perNode is %d, must be from 1 to %d", *d.PerNode, maxPerNode)
	}
	v.deployments = append(v.deployments, d.Name)
}

// daemonSet checks a step that creates a DaemonSet, or restarts one that an earlier step has created.
func (v *validation) daemonSet(d *DaemonSet) {
	there := slices.Contains(v.daemonSets, d.Name)
	v.name(d.Name, "network-agent")
	v.require(!there || d.Reports == "" && len(d.Labels) == 0, ": DaemonSet %s exists and is only restarted, must have no reports and no labels", d.Name)
	v.require(there || d.Reports != "", ".reports is empty, must be the type of a node condition, e.g. example.com/NetworkReady")
	v.daemonSets = append(v.daemonSets, d.Name)
}

func (v *validation) change(c *Change) {
	v.known("", c.Name)
	v.require(healthText[c.Is] != "", ".is is %q, must be %s, %s or %s", c.Is, Up, Down, Hangs)
	v.require(c.Is != Hangs || v.Components[c.Name].PodCondition == "", ".is is %q, must be %s or %s: a component that sets podCondition has no endpoint", Hangs, Up, Down)
	v.nodes(c.Nodes)
}

func (v *validation) expect(e *Expect) {
	v.require(len(e.checks()) > 0, " expects nothing, must name at least one of held, released, running, waiting, pods, rule, taintedAtCreation, gatedAtCreation, tolerated, last, why")
	v.require((e.Standing != "" || e.Says != "") == (e.Rule != ""), " must have rule together with standing or says, e.g. rule: network-readiness-rule and standing: Enforced")
	if e.Why != nil {
		v.require(e.Why.Contains != "", ".why.contains is empty, must be a part of the explanation")
		if e.Why.Pod != "" {
			v.deployed(".why.pod", e.Why.Pod)
		}
		v.hasJoined(".why.node", e.Why.Node)
	}
	if e.Last != nil {
		v.require(e.Last.Component != "", ".last.component is empty, must be the name of a component in the rule, e.g. policy")
		v.hasJoined(".last.node", e.Last.Node)
	}
	if len(e.Nodes) > 0 {
		v.nodes(e.Nodes)
	}
}

func (v *validation) name(name, example string) {
	v.require(nameForm.MatchString(name), ".name is %q, must consist of lower-case letters, digits and -, e.g. %s", name, example)
}

func (v *validation) known(field, component string) {
	_, known := v.Components[component]
	v.require(known, field+" names the component %q, must be one of %s", component, strings.Join(slices.Sorted(maps.Keys(v.Components)), ", "))
}

// nodes requires that every pattern matches a node that has joined before this step.
func (v *validation) nodes(patterns []string) {
	v.require(len(patterns) > 0, ".nodes is empty, must be names or patterns, e.g. [worker-*]")
	for _, pattern := range patterns {
		v.require(len(matching([]string{pattern}, v.joined)) > 0, ".nodes has %q, which matches no node that has joined before", pattern)
	}
}

func (v *validation) hasJoined(field, node string) {
	v.require(slices.Contains(v.joined, node), field+" is %q, which has not joined before", node)
}

func (v *validation) deployed(field, name string) {
	v.require(slices.Contains(v.deployments, name), field+" is %q, must be the name of an earlier deploy step, e.g. shop", name)
}

package scenario

// Scenario is the content of a scenario file.
type Scenario struct {
	// title is a short name, e.g. The CNI guide.
	Title string `json:"title"`
	// about describes the scenario in one or two sentences.
	About string `json:"about"`
	// components run on nodes; the keys are their names, e.g. calico. Absent: none.
	Components map[string]Component `json:"components,omitempty"`
	// always lists invariants, e.g. [noEarlyPod], which are checked from the first step to the last. Absent: none.
	Always []Invariant `json:"always,omitempty"`
	// steps run one after the other.
	Steps []Step `json:"steps"`
}

// Component is a program on a node. It is down until a step sets it
// up. Either a reporter reports its health as a condition of the node (condition), or the component sets
// a condition on each pod of the node when the pod's network is ready (podCondition).
type Component struct {
	// condition is the type of the node condition that reports its health, e.g.
	// projectcalico.org/CalicoReady.
	Condition string `json:"condition,omitempty"`
	// interval, failureThreshold and holdDown configure the reporter's check. Absent: the
	// defaults of the reporter.
	Interval         *Duration `json:"interval,omitempty"`
	FailureThreshold *int      `json:"failureThreshold,omitempty"`
	HoldDown         *Duration `json:"holdDown,omitempty"`
	// heartbeat is the time between two writes of unchanged conditions; the shortest heartbeat of the components
	// on a node applies. Absent: the default of the reporter, 5m.
	Heartbeat *Duration `json:"heartbeat,omitempty"`

	// podCondition is the type of the condition that the component sets on pods of the scenario, once per
	// sandbox, e.g. policy.example.com/programmed.
	PodCondition string `json:"podCondition,omitempty"`
	// takes is the time from a pod's sandbox to podCondition, e.g. 500ms. Absent: 0s.
	Takes *Duration `json:"takes,omitempty"`
}

// Invariant is a property that must always hold.
type Invariant string

const (
	// NoEarlyPod means that no pod is bound to a node while the node has a rule's NoSchedule taint,
	// unless the pod tolerates that taint.
	NoEarlyPod Invariant = "noEarlyPod"
	// ForeignTaintsStay means that taints with which nodes joined, and which no rule manages, are in every version of
	// the node.
	ForeignTaintsStay Invariant = "foreignTaintsStay"
	// HeldBeforeBack means that a node that reboots has the taint of a rule in the first version of
	// the node with the new boot ID.
	HeldBeforeBack Invariant = "heldBeforeBack"
	// NoEarlyReady means that no pod with a readiness gate is Ready while a gate is not True, and no gate has the reason
	// AllComponentsReady while a component is not ready.
	NoEarlyReady Invariant = "noEarlyReady"
)

// Text describes the invariant.
func (i Invariant) Text() string {
	return map[Invariant]string{
		NoEarlyPod:        "no pod was bound to a node while a rule held the node",
		ForeignTaintsStay: "taints that no rule manages stayed unchanged",
		HeldBeforeBack:    "rebooted nodes had the taint of a rule before they were Ready again",
		NoEarlyReady:      "no pod with a gate was Ready before every component was ready",
	}[i]
}

// Step is one step. Exactly one field is set.
type Step struct {
	// say prints a text.
	Say string `json:"say,omitempty"`
	// pause waits, e.g. 2s.
	Pause *Duration `json:"pause,omitempty"`
	// apply creates or changes a rule.
	Apply *Apply `json:"apply,omitempty"`
	// delete deletes a rule.
	Delete *Delete `json:"delete,omitempty"`
	// join creates nodes.
	Join *Join `json:"join,omitempty"`
	// deploy creates a Deployment.
	Deploy *Deploy `json:"deploy,omitempty"`
	// daemonSet creates a DaemonSet, or restarts it.
	DaemonSet *DaemonSet `json:"daemonSet,omitempty"`
	// component changes the health of a component.
	Component *Change `json:"component,omitempty"`
	// reporters starts or stops reporters.
	Reporters *Reporters `json:"reporters,omitempty"`
	// reboot reboots nodes.
	Reboot *Reboot `json:"reboot,omitempty"`
	// newSandbox gives pods a new sandbox.
	NewSandbox *NewSandbox `json:"newSandbox,omitempty"`
	// expect waits for a state. The scenario fails if the state is not reached in time.
	Expect *Expect `json:"expect,omitempty"`
}

// Apply creates or changes a rule, for nodes or for pods, from a file or from a manifest in the scenario.
type Apply struct {
	// file is a path from the root of the repository, e.g.
	// examples/cni-readiness/network-readiness-rule.yaml.
	File string `json:"file,omitempty"`
	// manifest is the text of one rule.
	Manifest string `json:"manifest,omitempty"`
	// refused is a part of the error with which the API server must reject the rule. Absent: the API server must accept it.
	Refused string `json:"refused,omitempty"`
}

// Delete deletes a rule.
type Delete struct {
	// rule is the name of the rule.
	Rule string `json:"rule"`
}

// Join creates nodes.
type Join struct {
	// name is the name of the node; with count, the names are name-1, name-2 and so on.
	Name  string `json:"name"`
	Count *int   `json:"count,omitempty"`
	// every is the time between two nodes, e.g. 800ms. Absent: 0s.
	Every *Duration `json:"every,omitempty"`
	// labels and taints of the new nodes; taints as key=value:effect.
	Labels map[string]string `json:"labels,omitempty"`
	Taints []string          `json:"taints,omitempty"`
	// runs lists the components on the node. Absent: all.
	Runs *[]string `json:"runs,omitempty"`
	// reporter is false if no reporter runs on the node. Absent: true.
	Reporter *bool `json:"reporter,omitempty"`
}

// HasReporter reports whether the reporter of the node runs when the node joins.
func (j *Join) HasReporter() bool { return j.Reporter == nil || *j.Reporter }

// Deploy creates a Deployment of pods that tolerate no taint of a rule.
type Deploy struct {
	// name is the name of the Deployment, e.g. shop.
	Name string `json:"name"`
	Pods int    `json:"pods"`
	// perNode is the number of pods that fit on a node. Absent: any number.
	PerNode *int `json:"perNode,omitempty"`
	// where is the node selector of the pods. Absent: any node.
	Where map[string]string `json:"where,omitempty"`
}

// DaemonSet creates a DaemonSet that tolerates no taint of a rule. If an earlier step has created the DaemonSet,
// the step restarts it, like kubectl rollout restart; then only name is set.
type DaemonSet struct {
	// name is the name of the DaemonSet, e.g. network-agent.
	Name string `json:"name"`
	// reports is the type of the node condition in the annotation that names what its pods report.
	Reports string `json:"reports,omitempty"`
	// labels are the labels of the DaemonSet object.
	Labels map[string]string `json:"labels,omitempty"`
}

// Change is a change of a component's health.
type Change struct {
	Name string `json:"name"`
	// nodes are names or patterns, e.g. worker-*.
	Nodes []string `json:"nodes"`
	// is is the new health: up, down, or hangs.
	Is Health `json:"is"`
	// every is the time between two nodes, e.g. 500ms. Absent: 0s.
	Every *Duration `json:"every,omitempty"`
}

// Health is the response of a component's endpoint.
type Health string

const (
	// Up means that the endpoint reports healthy.
	Up Health = "up"
	// Down means that the endpoint reports unhealthy.
	Down Health = "down"
	// Hangs means that the endpoint accepts requests and never responds.
	Hangs Health = "hangs"
)

// Reporters starts or stops the reporters of nodes.
type Reporters struct {
	// nodes are names or patterns.
	Nodes []string `json:"nodes"`
	// run is true to start the reporters, false to stop them.
	Run bool `json:"run"`
}

// Reboot reboots nodes. After it, components are down until a step sets them up, and conditions stay
// unchanged. A reporter that ran before starts again at the boot.
type Reboot struct {
	// nodes are names or patterns.
	Nodes []string `json:"nodes"`
	// takes is how long the node's Ready condition is Unknown, e.g. 5s. Absent: Ready does not change, as in
	// a quick reboot.
	Takes *Duration `json:"takes,omitempty"`
}

// NewSandbox replaces the sandboxes of pods by new ones, with another address. The pod objects stay the
// same.
type NewSandbox struct {
	// deploy is the name of the pods' Deployment.
	Deploy string `json:"deploy"`
	// nodes are names or patterns: all pods of the Deployment on these nodes get a new sandbox.
	Nodes []string `json:"nodes"`
	// takes is the time without a sandbox. Absent: 3s.
	Takes *Duration `json:"takes,omitempty"`
}

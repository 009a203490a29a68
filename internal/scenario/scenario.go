package scenario

// Scenario is the content of a scenario file.
type Scenario struct {
	// title is a short name, e.g. The CNI guide.
	Title string `json:"title"`
	// about describes the scenario in a sentence or two.
	About string `json:"about"`
	// components run on nodes, and reporters report their health. By name, e.g. calico.
	Components map[string]Component `json:"components,omitempty"`
	// always are invariants that are watched from the first step to the last.
	Always []Invariant `json:"always,omitempty"`
	// steps happen one after the other.
	Steps []Step `json:"steps"`
}

// Component is something on a node that has to be healthy. It is down until a step sets it
// up. Either a reporter reports its health as a condition of the node (condition), or the component sets
// a condition on each pod of the node when the pod's network is ready (podCondition).
type Component struct {
	// condition is the type of the node condition of its health, e.g.
	// projectcalico.org/CalicoReady.
	Condition string `json:"condition,omitempty"`
	// interval, failureThreshold and holdDown are those of the reporter's check. Absent: the
	// reporter's own.
	Interval         *Duration `json:"interval,omitempty"`
	FailureThreshold *int      `json:"failureThreshold,omitempty"`
	HoldDown         *Duration `json:"holdDown,omitempty"`
	// heartbeat is how often the reporter writes unchanged conditions; of several components
	// on a node the shortest counts. Absent: the reporter's own, 5m.
	Heartbeat *Duration `json:"heartbeat,omitempty"`

	// podCondition is the type of the condition that it sets on pods of the scenario, once for each
	// sandbox, e.g. policy.example.com/programmed.
	PodCondition string `json:"podCondition,omitempty"`
	// takes is how long it needs for a pod before it sets podCondition. Absent: no time.
	Takes *Duration `json:"takes,omitempty"`
}

// Invariant is something that must be so at every moment.
type Invariant string

const (
	// NoEarlyPod means that no pod is bound to a node while a rule's NoSchedule taint is on it,
	// unless it tolerates that taint.
	NoEarlyPod Invariant = "noEarlyPod"
	// ForeignTaintsStay means that taints with which nodes joined, and which no rule manages, are in every version of
	// the node.
	ForeignTaintsStay Invariant = "foreignTaintsStay"
	// HeldBeforeBack means that a node that was away for a reboot has the taint of a rule when it
	// is seen in its new boot for the first time.
	HeldBeforeBack Invariant = "heldBeforeBack"
	// NoEarlyReady means that no pod with a readiness gate is Ready while a gate is not True, and no gate has the reason
	// AllComponentsReady while a component is not ready.
	NoEarlyReady Invariant = "noEarlyReady"
)

// Text describes the invariant.
func (i Invariant) Text() string {
	return map[Invariant]string{
		NoEarlyPod:        "no pod was bound to a node while a rule held it",
		ForeignTaintsStay: "taints of others stayed as they were",
		HeldBeforeBack:    "a node that was away had the taint of a rule before it was back",
		NoEarlyReady:      "no pod with a gate was Ready before every component was ready",
	}[i]
}

// Step is one thing that happens. Exactly one field is set.
type Step struct {
	// say prints a text.
	Say string `json:"say,omitempty"`
	// pause lets time pass.
	Pause *Duration `json:"pause,omitempty"`
	// apply makes or changes objects.
	Apply *Apply `json:"apply,omitempty"`
	// delete deletes a rule.
	Delete *Delete `json:"delete,omitempty"`
	// join lets nodes join the cluster.
	Join *Join `json:"join,omitempty"`
	// deploy asks for pods.
	Deploy *Deploy `json:"deploy,omitempty"`
	// daemonSet makes a DaemonSet, or restarts it.
	DaemonSet *DaemonSet `json:"daemonSet,omitempty"`
	// component changes the health of a component.
	Component *Change `json:"component,omitempty"`
	// reporters start or stop.
	Reporters *Reporters `json:"reporters,omitempty"`
	// reboot reboots nodes.
	Reboot *Reboot `json:"reboot,omitempty"`
	// newSandbox gives pods a new sandbox.
	NewSandbox *NewSandbox `json:"newSandbox,omitempty"`
	// expect waits for a state. If it does not come, the scenario fails.
	Expect *Expect `json:"expect,omitempty"`
}

// Apply makes or changes rules, for nodes or for pods, from a file or from the text in the scenario.
type Apply struct {
	// file is a path from the root of the repository, e.g.
	// examples/cni-readiness/network-readiness-rule.yaml.
	File string `json:"file,omitempty"`
	// manifest is the text of one rule.
	Manifest string `json:"manifest,omitempty"`
	// refused is a part of the error with which the API server must reject it.
	Refused string `json:"refused,omitempty"`
}

// Delete deletes a rule.
type Delete struct {
	// rule is its name.
	Rule string `json:"rule"`
}

// Join lets nodes join the cluster.
type Join struct {
	// name is that of the node; with count, nodes are name-1, name-2 and so on.
	Name  string `json:"name"`
	Count *int   `json:"count,omitempty"`
	// every is the time between two of them. Absent: all at once.
	Every *Duration `json:"every,omitempty"`
	// labels and taints are those that it joins with; taints as key=value:effect.
	Labels map[string]string `json:"labels,omitempty"`
	Taints []string          `json:"taints,omitempty"`
	// runs are the components on the node. Absent: all.
	Runs *[]string `json:"runs,omitempty"`
	// reporter is whether a reporter runs there. Absent: true.
	Reporter *bool `json:"reporter,omitempty"`
}

// HasReporter is whether the reporter of the node runs when the node joins.
func (j *Join) HasReporter() bool { return j.Reporter == nil || *j.Reporter }

// Deploy asks for pods that tolerate no taint of a rule.
type Deploy struct {
	// name is that of the Deployment, e.g. shop.
	Name string `json:"name"`
	Pods int    `json:"pods"`
	// perNode is how many of them fit on a node. Absent: any number.
	PerNode *int `json:"perNode,omitempty"`
	// where are labels that a node must have for them. Absent: any node will do.
	Where map[string]string `json:"where,omitempty"`
}

// DaemonSet makes a DaemonSet that tolerates no taint of a rule. One that a step before has made
// is restarted, as kubectl rollout restart does: then it has a name only.
type DaemonSet struct {
	// name is that of the DaemonSet, e.g. network-agent.
	Name string `json:"name"`
	// reports is the type of the node condition that its pods are said to report.
	Reports string `json:"reports,omitempty"`
	// labels are those of the DaemonSet itself.
	Labels map[string]string `json:"labels,omitempty"`
}

// Change is a change of a component's health.
type Change struct {
	Name string `json:"name"`
	// nodes are names or patterns, e.g. worker-*.
	Nodes []string `json:"nodes"`
	// is is its health from now on: up, down, or hangs.
	Is Health `json:"is"`
	// every is the time between two nodes. Absent: all at once.
	Every *Duration `json:"every,omitempty"`
}

// Health is how a component answers.
type Health string

const (
	// Up answers that the component is healthy.
	Up Health = "up"
	// Down answers that the component is not healthy.
	Down Health = "down"
	// Hangs accepts the request and never answers.
	Hangs Health = "hangs"
)

// Reporters start or stop on nodes.
type Reporters struct {
	// nodes are names or patterns.
	Nodes []string `json:"nodes"`
	// run is whether they run from now on.
	Run bool `json:"run"`
}

// Reboot reboots nodes. Components are down after it until a step sets them up, and conditions stay
// as they were. A reporter that ran runs again at the boot.
type Reboot struct {
	// nodes are names or patterns.
	Nodes []string `json:"nodes"`
	// takes is how long a node is away, which Kubernetes notices at once. Absent: it is too quick
	// to be noticed, and Ready does not change.
	Takes *Duration `json:"takes,omitempty"`
}

// NewSandbox replaces the sandboxes of pods by new ones, with another address. The pods stay the
// same.
type NewSandbox struct {
	// deploy is the name of the Deployment that the pods are of.
	Deploy string `json:"deploy"`
	// nodes are names or patterns: all its pods there get one.
	Nodes []string `json:"nodes"`
	// takes is how long they have none. Absent: 3s.
	Takes *Duration `json:"takes,omitempty"`
}

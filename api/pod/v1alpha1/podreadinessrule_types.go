package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodReadinessRule says: pods like these carry this readiness gate, and it
// opens when every component of the pod network has said yes.
//
// Example: pods of namespaces with the label network-gate: "on" are ready
// only when flannel runs on their node and the policy engine has programmed
// them.
//
//	apiVersion: readygate.dev/v1alpha1
//	kind: PodReadinessRule
//	metadata:
//	  name: network
//	spec:
//	  namespaceSelector:
//	    matchLabels:
//	      network-gate: "on"
//	  components:
//	  - name: flannel
//	    nodeCondition:
//	      type: flannel.example.com/NetworkReady
//	  - name: policy
//	    podCondition:
//	      type: policy.example.com/programmed
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=prr
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Gate",type=string,JSONPath=`.spec.gate`,description="The readiness gate that selected pods carry."
// +kubebuilder:printcolumn:name="StartHold",type=boolean,JSONPath=`.spec.startHold`,description="Whether the start of containers waits, too."
// +kubebuilder:printcolumn:name="Gated",type=integer,JSONPath=`.status.summary.gated`,description="Selected pods that carry the gate."
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.summary.waiting`,description="Pods of those whose gate is closed."
// +kubebuilder:printcolumn:name="Ungated",type=integer,JSONPath=`.status.summary.ungated`,description="Selected pods that do not carry the gate."
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].reason`,description="Enforced if new pods get the gate and every node has an agent, or why not."
// +kubebuilder:printcolumn:name="Late",type=integer,priority=1,JSONPath=`.status.summary.late`,description="Pods that wait for longer than deadlineSeconds."
// +kubebuilder:printcolumn:name="NoAgent",type=integer,priority=1,JSONPath=`.status.summary.withoutAgent`,description="Pods on nodes without a live agent."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PodReadinessRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the rule asks for. All of it but gate can be changed.
	Spec PodReadinessRuleSpec `json:"spec"`

	// status is what became of it. Written by the manager only.
	// +optional
	Status PodReadinessRuleStatus `json:"status,omitzero"`
}

// PodReadinessRuleList is a list of rules.
//
// +kubebuilder:object:root=true
type PodReadinessRuleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PodReadinessRule `json:"items"`
}

// PodReadinessRuleSpec is what a rule asks for.
//
// +kubebuilder:validation:XValidation:rule="!has(self.onDeadline) || has(self.deadlineSeconds)",fieldPath=".onDeadline",message="onDeadline says what happens when deadlineSeconds are over: set deadlineSeconds, or remove onDeadline"
// +kubebuilder:validation:XValidation:rule="self.gate == oldSelf.gate",fieldPath=".gate",message="gate is immutable, because pods keep theirs: delete this rule and create one with the gate you want"
// +kubebuilder:validation:XValidation:rule="self.components.all(c, !has(c.podCondition) || has(c.podCondition.status) && c.podCondition.status == 'False' || !(c.podCondition.type in ['Ready', has(self.gate) ? self.gate : 'networking.kubernetes.io/pod-network-ready']))",fieldPath=".components",message="podCondition.type must not be Ready or the gate of the rule, which are True only after this component has said yes: name a condition that the component sets, e.g. 'policy.example.com/programmed'"
// +kubebuilder:validation:XValidation:rule="!has(self.startHold) || !self.startHold || self.components.all(c, !has(c.podCondition) || has(c.podCondition.status) && c.podCondition.status == 'False' || !(c.podCondition.type in ['ContainersReady', 'Initialized']))",fieldPath=".components",message="podCondition.type must not be ContainersReady or Initialized with startHold, which lets containers start only when this component has said yes: name a condition that the component sets, e.g. 'policy.example.com/programmed', or remove startHold"
type PodReadinessRuleSpec struct {
	// namespaceSelector selects pods by the labels of their namespace. Absent
	// means every namespace. kube-system and the namespace of Readygate are
	// selected only by a rule that names them: with the label
	// kubernetes.io/metadata.name, in matchLabels or with the operator In.
	//
	// +optional
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`

	// podSelector selects pods by their own labels. Absent means every pod.
	// Never selected are pods with hostNetwork, mirror pods, pods for Windows
	// (by spec.os.name, or by kubernetes.io/os in their nodeSelector), and
	// pods with the label readygate.dev/opt-out: "true".
	//
	// +optional
	PodSelector *LabelSelector `json:"podSelector,omitempty"`

	// gate is the readiness gate: the type of the pod condition that must be
	// True before the pod is Ready. Rules with the same gate open it together,
	// when the components of all of them have said yes. It must not be a
	// condition that Kubernetes or a load balancer controller sets. Immutable.
	//
	// +optional
	// +kubebuilder:default="networking.kubernetes.io/pod-network-ready"
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.contains('/') && self.indexOf('/') <= 253 && self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="gate must be a qualified name: a lower-case DNS prefix, '/' and a name of 1-63 characters, e.g. 'networking.kubernetes.io/pod-network-ready'"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('target-health.elbv2.k8s.aws/') && self != 'cloud.google.com/load-balancer-neg-ready' && !(self in ['AllContainersRestarting', 'ContainersReady', 'DisruptionTarget', 'Initialized', 'PodReadyToStartContainers', 'PodResizeInProgress', 'PodResizePending', 'PodScheduled', 'Ready'])",message="gate must not be a condition that Kubernetes (e.g. Ready) or a load balancer controller (target-health.elbv2.k8s.aws/..., cloud.google.com/load-balancer-neg-ready) sets: use 'networking.kubernetes.io/pod-network-ready', or a name with a prefix of your own, e.g. 'example.com/network-ready'"
	Gate string `json:"gate,omitempty"`

	// components are what programs the network of the selected pods. The gate
	// opens when all of them have said yes. 1 to 16, each name once.
	//
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Components []Component `json:"components"`

	// startHold keeps the containers of the pod from starting until the gate
	// opens, too: the API server puts an init container before all others that
	// waits. It takes effect for pods that are created from then on. Absent
	// means false.
	//
	// +optional
	StartHold bool `json:"startHold,omitempty"`

	// deadlineSeconds is how long a pod may wait since its sandbox and address
	// are known, or since its gate was closed again. One that waits longer is
	// late: a Warning event, status.summary.late and a metric say so. Absent
	// means for ever.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	DeadlineSeconds *int32 `json:"deadlineSeconds,omitempty"`

	// onDeadline says what becomes of a pod that is late: Report (meant when
	// absent) lets it wait on, Open opens its gate although a component has not
	// said yes, or its node has no live agent.
	//
	// +optional
	OnDeadline DeadlineAction `json:"onDeadline,omitempty"`

	// closePolicy is when an open gate closes again while the pod runs: Never
	// (meant when absent), or OnNotReady: when a component is not ready, for a
	// component that the agent probes after three failures in a row. With either
	// value the gate closes when the pod gets a new sandbox, e.g. after a reboot
	// of its node. Containers that have started go on running.
	//
	// +optional
	ClosePolicy ClosePolicy `json:"closePolicy,omitempty"`
}

// DeadlineAction says what becomes of a pod that waits for too long.
// +kubebuilder:validation:Enum=Report;Open
type DeadlineAction string

const (
	// DeadlineReport lets the pod wait on.
	DeadlineReport DeadlineAction = "Report"
	// DeadlineOpen opens its gate.
	DeadlineOpen DeadlineAction = "Open"
)

// ClosePolicy is when an open gate closes again.
// +kubebuilder:validation:Enum=Never;OnNotReady
type ClosePolicy string

const (
	// CloseNever leaves a gate open once all components were ready.
	CloseNever ClosePolicy = "Never"
	// CloseOnNotReady closes an open gate when a component is not ready.
	CloseOnNotReady ClosePolicy = "OnNotReady"
)

// Component is something that programs a pod's network, and how it says that
// it is done: exactly one of podCondition, nodeCondition, file, http and
// reach.
//
// +kubebuilder:validation:XValidation:rule="[has(self.podCondition), has(self.nodeCondition), has(self.file), has(self.http), has(self.reach)].filter(x, x).size() == 1",message="a component must have exactly one of podCondition, nodeCondition, file, http and reach, e.g. podCondition {type: policy.example.com/programmed}"
type Component struct {
	// name of the component, as it is shown to users, e.g. calico.
	//
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be 1-63 lower-case letters, digits and '-', alphanumeric at both ends, e.g. 'calico'"
	Name string `json:"name"`

	// podCondition is a condition of the pod that the component sets.
	//
	// +optional
	PodCondition *ConditionComponent `json:"podCondition,omitempty"`

	// nodeCondition is a condition of the pod's node.
	//
	// +optional
	NodeCondition *ConditionComponent `json:"nodeCondition,omitempty"`

	// file is a file on the pod's node. The agent sees only what the chart
	// mounts for it (podgate.hostPaths).
	//
	// +optional
	File *FileComponent `json:"file,omitempty"`

	// http is an endpoint on the pod's node.
	//
	// +optional
	HTTP *HTTPComponent `json:"http,omitempty"`

	// reach says yes when a TCP connection from the pod's own node to the pod
	// is accepted or reset: for networks that nobody speaks for.
	//
	// +optional
	Reach *ReachComponent `json:"reach,omitempty"`
}

// ConditionComponent is a condition and the status that means yes.
type ConditionComponent struct {
	// type of the condition, e.g. policy.example.com/programmed.
	//
	// +required
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="type must be a name of 1-63 characters (alphanumeric, '-', '_' or '.', alphanumeric at both ends), optionally after a lower-case DNS prefix and '/', e.g. 'policy.example.com/programmed'"
	Type string `json:"type"`

	// status of the condition that means yes. Absent means True.
	//
	// +optional
	// +kubebuilder:validation:Enum="True";"False"
	Status corev1.ConditionStatus `json:"status,omitempty"`
}

// FileComponent is a file that the component writes for each pod. In path and
// contains, {name}, {namespace}, {uid} and {ip} stand for those of the pod
// ({ip} is its first address; {ipv4} and {ipv6} the first of each family).
//
// +kubebuilder:validation:XValidation:rule="self.path.contains('{') || (has(self.contains) && self.contains.contains('{'))",message="path or contains must name the pod, or one file would speak for all: use {name}, {namespace}, {uid} or {ip}, e.g. '/run/example/{uid}'"
type FileComponent struct {
	// path of the file on the node, e.g.
	// /var/run/calico/endpoint-status/k8s {namespace}%2F{name} eth0.
	//
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !('..' in self.split('/'))",message="path must be absolute and without '..', e.g. '/run/example/{uid}'"
	// +kubebuilder:validation:XValidation:rule="!self.replace('{name}', '').replace('{namespace}', '').replace('{uid}', '').replace('{ip}', '').replace('{ipv4}', '').replace('{ipv6}', '').matches('[{}]')",message="path may have {name}, {namespace}, {uid}, {ip}, {ipv4} and {ipv6} in braces, and nothing else, e.g. '/run/example/{uid}'"
	Path string `json:"path"`

	// contains is what the file must contain to say yes, as a whole value:
	// 10.0.0.1 is not in 110.0.0.1. A file of an earlier pod with the same name
	// does not count if this names what differs, e.g. "{ip}/32". Absent means
	// that it is enough that the file is there.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.replace('{name}', '').replace('{namespace}', '').replace('{uid}', '').replace('{ip}', '').replace('{ipv4}', '').replace('{ipv6}', '').matches('[{][a-z0-9]*[}]')",message="contains may have {name}, {namespace}, {uid}, {ip}, {ipv4} and {ipv6} in braces, and no other word, e.g. '{ip}/32'"
	Contains string `json:"contains,omitempty"`
}

// HTTPComponent is an endpoint on the pod's node that says yes with a status
// of 200 to 299.
type HTTPComponent struct {
	// url on the node's own localhost. {name}, {namespace}, {uid}, {ip}, {ipv4}
	// and {ipv6} stand for those of the pod, escaped, e.g.
	// http://127.0.0.1:9099/pods/{namespace}/{name}.
	//
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://(127[.]0[.]0[.]1|localhost|[[]::1[]]):([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])(/|$)')",message="url must be one of the node's localhost with a port of 1 to 65535, e.g. 'http://127.0.0.1:9099/pods/{namespace}/{name}'"
	// +kubebuilder:validation:XValidation:rule="!self.replace('{name}', '').replace('{namespace}', '').replace('{uid}', '').replace('{ip}', '').replace('{ipv4}', '').replace('{ipv6}', '').matches('[{}]')",message="url may have {name}, {namespace}, {uid}, {ip}, {ipv4} and {ipv6} in braces, and nothing else, e.g. 'http://127.0.0.1:9099/pods/{uid}'"
	URL string `json:"url"`
}

// ReachComponent says how a pod is reached.
type ReachComponent struct {
	// port of the pod that is tried. Nothing needs to listen there: a reset
	// shows that the pod was reached as well. Absent means 9.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// from is where the connection is opened: on the pod's own Node, by its
	// agent. Node is the only value. Absent means Node.
	//
	// +optional
	From ReachFrom `json:"from,omitempty"`
}

// ReachFrom is where the connection to a pod is opened.
// +kubebuilder:validation:Enum=Node
type ReachFrom string

const (
	// ReachFromNode opens it on the pod's own node.
	ReachFromNode ReachFrom = "Node"
)

// LabelSelector selects objects by their labels: every label in matchLabels
// and every entry of matchExpressions must match.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="the selector must not be empty: name at least one label, or leave the selector out"
type LabelSelector struct {
	// matchLabels are labels that an object must have, each with exactly this
	// value.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// matchExpressions are requirements on labels, all of which must hold.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MatchExpressions []LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// LabelSelectorRequirement is a requirement on one label.
//
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)",fieldPath=".values",message="values must not be empty when operator is In or NotIn: add values, or use Exists or DoesNotExist"
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || self.values.size() == 0",fieldPath=".values",message="values must be empty when operator is Exists or DoesNotExist: remove them, or use In or NotIn"
type LabelSelectorRequirement struct {
	// key of the label, e.g. app.kubernetes.io/name.
	//
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.indexOf('/') <= 253",message="label key must have at most 253 characters before its '/', e.g. 'app.kubernetes.io/name'"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="label key must be a name of 1-63 characters (alphanumeric, '-', '_' or '.', alphanumeric at both ends), optionally after a lower-case DNS prefix and '/', e.g. 'app.kubernetes.io/name'"
	Key string `json:"key"`

	// operator is In, NotIn, Exists or DoesNotExist. An object without the label
	// matches NotIn and DoesNotExist.
	//
	// +required
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator metav1.LabelSelectorOperator `json:"operator"`

	// values are compared with the label's value. Needed for In and NotIn,
	// forbidden for Exists and DoesNotExist.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Values []LabelValue `json:"values,omitempty"`
}

// LabelValue is the value of a label; it may be empty. Null, as in a manifest
// with nothing after the colon, is empty too.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",message="label value must be empty or consist of alphanumeric characters, '-', '_' or '.', with an alphanumeric character at both ends, e.g. 'web'"
type LabelValue string

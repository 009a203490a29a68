package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodReadinessRule adds a readiness gate to the selected pods. The agent on
// the pod's node (podgate) opens the gate, that is, sets the pod condition to
// True, when every component of the pod network is ready.
//
// Example: pods of namespaces with the label network-gate: "on" are Ready
// only when flannel is ready on their node and the policy engine has
// programmed them.
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
// +kubebuilder:metadata:annotations="readygate.dev/minimum-kubernetes-version=1.33"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Gate",type=string,JSONPath=`.spec.gate`,description="Readiness gate of selected pods."
// +kubebuilder:printcolumn:name="StartHold",type=boolean,JSONPath=`.spec.startHold`,description="true if containers also wait for the gate."
// +kubebuilder:printcolumn:name="Gated",type=integer,JSONPath=`.status.summary.gated`,description="Number of selected pods that have the gate."
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.summary.waiting`,description="Number of gated pods whose gate or latch is closed."
// +kubebuilder:printcolumn:name="Ungated",type=integer,JSONPath=`.status.summary.ungated`,description="Number of selected pods that do not have the gate."
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].reason`,description="Reason of the condition Enforced: Enforced if new pods get the gate and every node with such pods has an agent."
// +kubebuilder:printcolumn:name="Late",type=integer,priority=1,JSONPath=`.status.summary.late`,description="Number of pods that wait for longer than deadlineSeconds."
// +kubebuilder:printcolumn:name="NoAgent",type=integer,priority=1,JSONPath=`.status.summary.withoutAgent`,description="Number of gated pods on nodes without a live agent."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PodReadinessRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state. gate is immutable; all other fields can be
	// changed.
	Spec PodReadinessRuleSpec `json:"spec"`

	// status is the observed state. Only the manager writes it.
	// +optional
	Status PodReadinessRuleStatus `json:"status,omitzero"`
}

// PodReadinessRuleList is a list of PodReadinessRules.
//
// +kubebuilder:object:root=true
type PodReadinessRuleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PodReadinessRule `json:"items"`
}

// PodReadinessRuleSpec is the desired state of a rule.
//
// +kubebuilder:validation:XValidation:rule="!has(self.onDeadline) || has(self.deadlineSeconds)",fieldPath=".onDeadline",message="onDeadline has no effect without deadlineSeconds: set deadlineSeconds, or remove onDeadline"
// +kubebuilder:validation:XValidation:rule="self.gate == oldSelf.gate",fieldPath=".gate",message="gate is immutable, because the gates of a pod cannot change: delete this rule and create one with the gate you want"
// +kubebuilder:validation:XValidation:rule="self.components.all(c, !has(c.podCondition) || has(c.podCondition.status) && c.podCondition.status == 'False' || !(c.podCondition.type in ['Ready', has(self.gate) ? self.gate : 'networking.kubernetes.io/pod-network-ready']))",fieldPath=".components",message="podCondition.type must not be Ready or the gate of the rule, which are True only after this component is ready: name a condition that the component sets, e.g. 'policy.example.com/programmed'"
// +kubebuilder:validation:XValidation:rule="!has(self.startHold) || !self.startHold || self.components.all(c, !has(c.podCondition) || has(c.podCondition.status) && c.podCondition.status == 'False' || !(c.podCondition.type in ['ContainersReady', 'Initialized']))",fieldPath=".components",message="podCondition.type must not be ContainersReady or Initialized with startHold, because containers start only after this component is ready: name a condition that the component sets, e.g. 'policy.example.com/programmed', or remove startHold"
type PodReadinessRuleSpec struct {
	// namespaceSelector selects pods by the labels of their namespace, e.g.
	// network-gate: "on". Absent means every namespace. kube-system and the
	// namespace of Readygate are selected only if the selector names them with
	// the label kubernetes.io/metadata.name, in matchLabels or with the operator
	// In.
	//
	// +optional
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`

	// podSelector selects pods by their labels, e.g. app: web. Absent means every
	// pod. A rule never selects pods with hostNetwork, mirror pods, pods for
	// Windows (by spec.os.name, or by kubernetes.io/os in their nodeSelector),
	// and pods with the label readygate.dev/opt-out: "true".
	//
	// +optional
	PodSelector *LabelSelector `json:"podSelector,omitempty"`

	// gate is the readiness gate: the type of the pod condition that must be
	// True before the pod is Ready. If several rules with the same gate select a
	// pod, the gate opens when the components of all these rules are ready. It
	// must not be a condition that Kubernetes or a load balancer controller
	// sets. Absent means networking.kubernetes.io/pod-network-ready. Immutable.
	//
	// +optional
	// +kubebuilder:default="networking.kubernetes.io/pod-network-ready"
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.contains('/') && self.indexOf('/') <= 253 && self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="gate must be a qualified name: a lower-case DNS prefix, '/' and a name of 1-63 characters, e.g. 'networking.kubernetes.io/pod-network-ready'"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('target-health.elbv2.k8s.aws/') && self != 'cloud.google.com/load-balancer-neg-ready' && !(self in ['AllContainersRestarting', 'ContainersReady', 'DisruptionTarget', 'Initialized', 'PodReadyToStartContainers', 'PodResizeInProgress', 'PodResizePending', 'PodScheduled', 'Ready'])",message="gate must not be a condition that Kubernetes (e.g. Ready) or a load balancer controller (target-health.elbv2.k8s.aws/..., cloud.google.com/load-balancer-neg-ready) sets: use 'networking.kubernetes.io/pod-network-ready', or a name with a prefix of your own, e.g. 'example.com/network-ready'"
	Gate string `json:"gate,omitempty"`

	// components program the network of the selected pods. The gate opens when
	// all of them are ready. 1 to 16 entries, each name once.
	//
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Components []Component `json:"components"`

	// startHold also keeps the containers of the pod from starting until the gate
	// opens: the API server adds a first init container, the latch, that waits.
	// A change applies to pods that are created after it. Absent means false.
	//
	// +optional
	StartHold bool `json:"startHold,omitempty"`

	// deadlineSeconds is how long a pod may wait after its sandbox and address
	// are known, or after its gate closed again, e.g. 300. A pod that waits
	// longer is late: it gets a Warning event and counts in status.summary.late
	// and in a metric. Absent means no deadline.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	DeadlineSeconds *int32 `json:"deadlineSeconds,omitempty"`

	// onDeadline is what happens to a pod that is late. With Report it continues
	// to wait. With Open its gate opens although a component is not ready, or
	// although its node has no live agent. Absent means Report.
	//
	// +optional
	OnDeadline DeadlineAction `json:"onDeadline,omitempty"`

	// closePolicy is when an open gate closes again while the pod runs: Never,
	// or OnNotReady, when a component is no longer ready. A component that the
	// agent probes (file, http, reach) is no longer ready after three failures
	// in a row. With either value the gate closes when the pod gets a new
	// sandbox, e.g. after a reboot of its node. Running containers continue to
	// run. Absent means Never.
	//
	// +optional
	ClosePolicy ClosePolicy `json:"closePolicy,omitempty"`
}

// DeadlineAction is what happens to a pod that waits for longer than
// deadlineSeconds.
// +kubebuilder:validation:Enum=Report;Open
type DeadlineAction string

const (
	// DeadlineReport keeps the gate closed.
	DeadlineReport DeadlineAction = "Report"
	// DeadlineOpen opens the gate.
	DeadlineOpen DeadlineAction = "Open"
)

// ClosePolicy is when an open gate closes again.
// +kubebuilder:validation:Enum=Never;OnNotReady
type ClosePolicy string

const (
	// CloseNever keeps a gate open once all components were ready.
	CloseNever ClosePolicy = "Never"
	// CloseOnNotReady closes an open gate when a component is no longer ready.
	CloseOnNotReady ClosePolicy = "OnNotReady"
)

// Component programs a pod's network. Exactly one of podCondition,
// nodeCondition, file, http and reach defines when it is ready.
//
// +kubebuilder:validation:XValidation:rule="[has(self.podCondition), has(self.nodeCondition), has(self.file), has(self.http), has(self.reach)].filter(x, x).size() == 1",message="a component must have exactly one of podCondition, nodeCondition, file, http and reach, e.g. podCondition {type: policy.example.com/programmed}"
type Component struct {
	// name of the component in messages, e.g. calico.
	//
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be 1-63 lower-case letters, digits and '-', alphanumeric at both ends, e.g. 'calico'"
	Name string `json:"name"`

	// podCondition is a condition of the pod that the component sets, e.g.
	// policy.example.com/programmed. Absent means that another field is set.
	//
	// +optional
	PodCondition *ConditionComponent `json:"podCondition,omitempty"`

	// nodeCondition is a condition of the pod's node, e.g.
	// network.k8s.io/CalicoReady.
	//
	// +optional
	NodeCondition *ConditionComponent `json:"nodeCondition,omitempty"`

	// file is a file on the pod's node. The agent can read only the directories
	// of the chart value podgate.hostPaths.
	//
	// +optional
	File *FileComponent `json:"file,omitempty"`

	// http is an HTTP endpoint on the pod's node.
	//
	// +optional
	HTTP *HTTPComponent `json:"http,omitempty"`

	// reach is ready when the pod accepts or resets a TCP connection from its own
	// node. Use it if no component of the network reports its state.
	//
	// +optional
	Reach *ReachComponent `json:"reach,omitempty"`
}

// ConditionComponent is a condition and the status that means ready.
type ConditionComponent struct {
	// type of the condition, e.g. policy.example.com/programmed.
	//
	// +required
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="type must be a name of 1-63 characters (alphanumeric, '-', '_' or '.', alphanumeric at both ends), optionally after a lower-case DNS prefix and '/', e.g. 'policy.example.com/programmed'"
	Type string `json:"type"`

	// status of the condition that means ready. Absent means True.
	//
	// +optional
	// +kubebuilder:validation:Enum="True";"False"
	Status corev1.ConditionStatus `json:"status,omitempty"`
}

// FileComponent is a file that the component writes for each pod. In path and
// contains, {name}, {namespace}, {uid} and {ip} are replaced with the values of
// the pod. {ip} is its first address; {ipv4} and {ipv6} are its first address
// of each family.
//
// +kubebuilder:validation:XValidation:rule="self.path.contains('{') || (has(self.contains) && self.contains.contains('{'))",message="path or contains must name the pod, otherwise one file would count for all pods: use {name}, {namespace}, {uid} or {ip}, e.g. '/run/example/{uid}'"
type FileComponent struct {
	// path of the file on the node, e.g.
	// /var/run/calico/endpoint-status/k8s {namespace}%2F{name} eth0.
	//
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !('..' in self.split('/'))",message="path must be absolute and without '..', e.g. '/run/example/{uid}'"
	// +kubebuilder:validation:XValidation:rule="!self.replace('{name}', '').replace('{namespace}', '').replace('{uid}', '').replace('{ip}', '').replace('{ipv4}', '').replace('{ipv6}', '').matches('[{}]')",message="path may have {name}, {namespace}, {uid}, {ip}, {ipv4} and {ipv6} in braces, and nothing else, e.g. '/run/example/{uid}'"
	Path string `json:"path"`

	// contains is what the file must contain as a whole value: 110.0.0.1 does not
	// contain 10.0.0.1. To ignore a file of an earlier pod with the same name,
	// name a value that differs, e.g. "{ip}/32". Absent means that the component
	// is ready if the file exists.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.replace('{name}', '').replace('{namespace}', '').replace('{uid}', '').replace('{ip}', '').replace('{ipv4}', '').replace('{ipv6}', '').matches('[{][a-z0-9]*[}]')",message="contains may have {name}, {namespace}, {uid}, {ip}, {ipv4} and {ipv6} in braces, and no other word, e.g. '{ip}/32'"
	Contains string `json:"contains,omitempty"`
}

// HTTPComponent is an endpoint on the pod's node. The component is ready if the
// endpoint returns a status of 200 to 299.
type HTTPComponent struct {
	// url on the node's localhost, e.g.
	// http://127.0.0.1:9099/pods/{namespace}/{name}. {name}, {namespace}, {uid},
	// {ip}, {ipv4} and {ipv6} are replaced with the escaped values of the pod.
	//
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://(127[.]0[.]0[.]1|localhost|[[]::1[]]):([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])(/|$)')",message="url must have the host 127.0.0.1, localhost or [::1] and a port from 1 to 65535, e.g. 'http://127.0.0.1:9099/pods/{namespace}/{name}'"
	// +kubebuilder:validation:XValidation:rule="!self.replace('{name}', '').replace('{namespace}', '').replace('{uid}', '').replace('{ip}', '').replace('{ipv4}', '').replace('{ipv6}', '').matches('[{}]')",message="url may have {name}, {namespace}, {uid}, {ip}, {ipv4} and {ipv6} in braces, and nothing else, e.g. 'http://127.0.0.1:9099/pods/{uid}'"
	URL string `json:"url"`
}

// ReachComponent is a TCP connection to the pod.
type ReachComponent struct {
	// port of the pod. No container needs to listen there: a reset also shows
	// that the pod is reachable. Absent means 9.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// from is where the connection is opened. The only value is Node: the agent
	// on the pod's own node opens it. Absent means Node.
	//
	// +optional
	From ReachFrom `json:"from,omitempty"`
}

// ReachFrom is where the connection to a pod is opened.
// +kubebuilder:validation:Enum=Node
type ReachFrom string

const (
	// ReachFromNode means that the agent on the pod's own node opens it.
	ReachFromNode ReachFrom = "Node"
)

// LabelSelector selects objects by their labels: every label in matchLabels
// and every entry of matchExpressions must match.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="the selector must not be empty: name at least one label, or remove the selector"
type LabelSelector struct {
	// matchLabels are labels that an object must have, each with exactly this
	// value. Absent means no such requirement.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// matchExpressions are requirements on labels. All of them must match. Absent
	// means no such requirement.
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

	// values are compared with the label's value. Required for In and NotIn,
	// forbidden for Exists and DoesNotExist.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Values []LabelValue `json:"values,omitempty"`
}

// LabelValue is the value of a label. It may be empty. Null, as in a manifest
// with nothing after the colon, also means empty.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",message="label value must be empty or consist of alphanumeric characters, '-', '_' or '.', with an alphanumeric character at both ends, e.g. 'web'"
type LabelValue string

// Package uninstall is the program readygate-manager cleanup: it stops the writers and removes what Readygate
// added to the cluster. Without --rules=delete, rules stay, so that another controller of this API can enforce
// them.
//
// It decides nothing about nodes and pods: the core packages noderule and podrule plan the changes, as for rules
// that do not exist. Each step is idempotent, so that the next run completes one that was killed. It never removes
// a taint, annotation, finalizer or policy that Readygate does not own, and does not change nodes and rules while
// another controller enforces the rules.
package uninstall

// All permissions of the cleanup. Three admission policies limit it further: readygate-cleanup, on nodes, to
// removals; readygate-openers, on pods, to opening gates; and readygate-rules, on rules, to removing the
// finalizer. It may delete rules. It may scale the manager, but not change it otherwise. It may delete the two
// mutating policies, by name. It may delete DaemonSets and leases in its own namespace only; RBAC cannot limit
// that to a label.
//
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;patch
// +kubebuilder:rbac:groups="",resources=nodes/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups=readiness.node.x-k8s.io,resources=nodereadinessrules,verbs=list;patch;delete
// +kubebuilder:rbac:groups=readiness.node.x-k8s.io,resources=nodereadinessrules/status,verbs=patch
// +kubebuilder:rbac:groups=readygate.dev,resources=podreadinessrules,verbs=list;patch;delete
// +kubebuilder:rbac:groups=readygate.dev,resources=podreadinessrules/status,verbs=patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingadmissionpolicies;mutatingadmissionpolicybindings,resourceNames=readygate-taint-new-nodes;readygate-gate-new-pods,verbs=get;delete
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=ba65f13e.readiness.node.x-k8s.io,verbs=list
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=readygate-rule-taints,namespace=readygate-system,verbs=get;delete
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=readygate-system,verbs=create;list;delete
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=ba65f13e.readiness.node.x-k8s.io,namespace=readygate-system,verbs=get;update
// +kubebuilder:rbac:groups=apps,resources=deployments,resourceNames=readygate-manager,namespace=readygate-system,verbs=get
// +kubebuilder:rbac:groups=apps,resources=deployments/scale,resourceNames=readygate-manager,namespace=readygate-system,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=daemonsets,namespace=readygate-system,verbs=list;delete

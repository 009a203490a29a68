// Package cleanup takes Readygate out of a cluster: it stops the writers, and removes what they
// put there. Rules stay unless it is told to delete them, so that another controller of this
// API can go on with them.
//
// It decides nothing about nodes and pods: what to take off a node is the ordinary plan of package
// readiness for rules that nobody enforces, and what to open on a pod is what package gating decides
// where there are no rules. Each step can be done again, and looks whether it is done, so
// that a run that was killed anywhere is completed by the next. It never removes a taint,
// annotation, finalizer or policy of others, and leaves nodes and rules alone while another
// controller enforces them.
package cleanup

// What the cleanup may do, and nothing else. On nodes the policy readygate-cleanup limits it
// further, to removals, on pods readygate-openers, to opening gates, and on rules readygate-rules, to
// removing the finalizer; it can delete rules. It can stop the manager and
// not change it; of the policies, it can delete those that taint nodes and gate pods; DaemonSets and
// leases it can delete in its own namespace only, where a role cannot say which.
//
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;patch
// +kubebuilder:rbac:groups="",resources=nodes/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups=readiness.node.x-k8s.io,resources=nodereadinessrules,verbs=list;patch;delete
// +kubebuilder:rbac:groups=readiness.node.x-k8s.io,resources=nodereadinessrules/status,verbs=patch
// +kubebuilder:rbac:groups=readygate.dev,resources=podreadinessrules,verbs=list;patch;delete
// +kubebuilder:rbac:groups=readygate.dev,resources=podreadinessrules/status,verbs=patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingadmissionpolicies;mutatingadmissionpolicybindings,resourceNames=readygate-births;readygate-gates,verbs=get;delete
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=ba65f13e.readiness.node.x-k8s.io,verbs=list
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=readygate-rule-taints,namespace=readygate-system,verbs=get;delete
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=readygate-system,verbs=create;list;delete
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=ba65f13e.readiness.node.x-k8s.io,namespace=readygate-system,verbs=get;update
// +kubebuilder:rbac:groups=apps,resources=deployments,resourceNames=readygate-manager,namespace=readygate-system,verbs=get
// +kubebuilder:rbac:groups=apps,resources=deployments/scale,resourceNames=readygate-manager,namespace=readygate-system,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=daemonsets,namespace=readygate-system,verbs=list;delete

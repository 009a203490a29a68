// Package manager is the program readygate-manager: flags, caches, leader election, health and metrics, and the
// controllers of nodes, rules and admission policies in its subdirectories. It decides nothing about nodes.
package manager

// All permissions of the manager. It may update two policies, by name, and create none; their bindings, which it may
// only read, limit them to nodes and to pods. It must not get rules, pods or namespaces: an account that can could use
// them as params of a policy, and a policy whose params are not yet synced, as after the start of an API server, can
// reject all requests. It writes the ConfigMap readygate-rule-taints in its own namespace; RBAC cannot limit create to
// a name. It uses its own lease and those of the agents in its own namespace; it lists the one lease name in all
// namespaces to detect another controller of this API. Two admission policies limit it further: readygate-openers, on
// pods, to opening gates, and readygate-rules, on rules, to its finalizer.
//
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=list;watch
// +kubebuilder:rbac:groups=readiness.node.x-k8s.io,resources=nodereadinessrules,verbs=list;watch;patch
// +kubebuilder:rbac:groups=readiness.node.x-k8s.io,resources=nodereadinessrules/status,verbs=patch
// +kubebuilder:rbac:groups=readygate.dev,resources=podreadinessrules,verbs=list;watch;patch
// +kubebuilder:rbac:groups=readygate.dev,resources=podreadinessrules/status,verbs=patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingadmissionpolicies,resourceNames=readygate-taint-new-nodes;readygate-gate-new-pods,verbs=get;list;watch;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingadmissionpolicybindings,resourceNames=readygate-taint-new-nodes;readygate-gate-new-pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=ba65f13e.readiness.node.x-k8s.io,verbs=list
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups="",resources=configmaps,namespace=readygate-system,verbs=create
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=readygate-rule-taints,namespace=readygate-system,verbs=get;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=readygate-system,verbs=create;list;watch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=ba65f13e.readiness.node.x-k8s.io,namespace=readygate-system,verbs=get;update

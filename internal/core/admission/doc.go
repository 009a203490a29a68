// Package admission compiles and builds the admission policies: what the API server itself does and rejects,
// without a webhook.
//
//   - readygate-taint-new-nodes adds a rule's taint to a node when the node is created, or in the request that makes the
//     rule select it. It is compiled from all rules.
//   - readygate-conflicts rejects a rule that conflicts with an existing one.
//   - readygate-manager limits the manager's account to what it needs on nodes.
//   - readygate-cleanup limits the account of the uninstaller to removals.
//   - readygate-rules limits both accounts, on rules, to adding and removing their finalizer.
//   - readygate-removal warns a user who removes a part that others need.
//   - readygate-advice warns a user who creates a rule that could evict everything.
//   - readygate-tolerations adds the toleration of a rule's taint to DaemonSets that the rule names.
//   - readygate-gate-new-pods adds the readiness gate of a rule, and the latch, to a pod when the pod is created. It is
//     compiled from all PodReadinessRules.
//   - readygate-podgate limits the account of the agents to gates of pods on their own node, and readygate-openers
//     the manager and the uninstaller to opening gates.
//   - readygate-reserved-gates keeps all other accounts from setting gates of rules to True. It is installed only
//     on request.
//   - readygate-completions rejects completion records of kubelets and agents. It has no binding, and so has no
//     effect until an administrator applies one.
//   - readygate-holds rejects every account except the manager that adds or changes an ownership record on an
//     existing node.
//   - readygate-reporter-… limits the account of a reporter to its conditions on its own node; readygate-own-
//     node-… limits a shared account to its own node; and readygate-reserved-… keeps all other accounts from a
//     reporter's conditions.
//
// The package is pure: it builds objects and has no client. What a policy decides is a conservative part of what
// package noderule decides; tests compare the two.
package admission

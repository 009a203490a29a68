// Package policy writes the admission policies: what the API server itself does and refuses,
// without a webhook.
//
//   - readygate-births puts a rule's taint on a node as it is created, or in the request that
//     makes a rule select it. Its text is compiled from all rules.
//   - readygate-conflicts refuses a rule that conflicts with an existing one.
//   - readygate-manager limits the manager's own account to what it needs on nodes.
//   - readygate-cleanup limits the account that uninstalls to removals.
//   - readygate-rules limits both accounts, on rules, to adding and removing their finalizer.
//   - readygate-removal warns who removes a part that others need.
//   - readygate-advice warns who creates a rule that could evict everything.
//   - readygate-tolerations lets DaemonSets that a rule names tolerate its taint.
//   - readygate-gates puts the readiness gate of a rule, and the latch, on a pod as it is created. Its
//     text is compiled from all rules for pods.
//   - readygate-podgate limits the account of the agents to gates of pods on their own node, and
//     readygate-openers the manager and the clean-up to opening gates.
//   - readygate-reserved-gates keeps all other accounts from setting gates of rules to True. It is
//     installed only on request.
//   - readygate-completions refuses kubelets and agents that mark a node as completed. It has
//     no binding, and so does nothing, until somebody applies one.
//   - readygate-holds refuses everyone but the manager who adds or changes a hold record on a node
//     that exists.
//   - readygate-reporter-… limits the account of a reporter to its conditions on its own node;
//     readygate-own-node-… an account that is not only a reporter's to its own node; and
//     readygate-reserved-… keeps everybody else from a reporter's conditions.
//
// The package is pure: it makes objects and touches no cluster. What a policy decides is a
// conservative part of what package readiness decides; tests hold the two against each other.
package policy

// Package admission keeps the policies by which the API server itself does what rules ask for as
// objects are created: taints on nodes, gates on pods. It is the only writer of these policies, and
// writes nothing else: it cannot create them, and does not touch their bindings. Where an administrator
// applies the policies it only compares them with the rules.
package admission

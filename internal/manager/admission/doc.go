// Package admission is the controller of the two compiled admission policies, which add taints to new nodes and
// gates to new pods. It is the only writer of these policies and writes nothing else: it cannot create them, and
// does not change their bindings. If an administrator applies the policies, it only compares them with the rules.
//
// Coverage records which rules a policy contains, and since when.
package admission

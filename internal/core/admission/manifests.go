package admission

import "k8s.io/apimachinery/pkg/runtime"

// Installed are the policies and bindings that an administrator installs.
func Installed() []runtime.Object {
	return []runtime.Object{
		TaintNewNodesPolicy(), TaintNewNodesBinding(),
		Conflicts(), ConflictsBinding(),
		Manager(), ManagerBinding(),
		Cleanup(), CleanupBinding(),
		Rules(), RulesBinding(),
		Removal(), RemovalBinding(),
		Advice(), AdviceBinding(),
		Tolerations(), TolerationsBinding(),
		Completions(),
		Holds(), HoldsBinding(),
		GateNewPodsPolicy(), GateNewPodsBinding(),
		Podgate(), PodgateBinding(),
		Openers(), OpenersBinding(),
	}
}

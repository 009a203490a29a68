package admission

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

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

// YAML is one document per object, without fields that the API server sets.
func YAML(objects ...runtime.Object) ([][]byte, error) {
	var documents [][]byte
	for _, obj := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, err
		}
		unstructured.RemoveNestedField(content, "status")
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		document, err := yaml.Marshal(content)
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
	return documents, nil
}

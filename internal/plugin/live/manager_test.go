package live

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// The manager accepts both forms of a flag, and uses the last one.
func TestLatchImageIsThatOfTheManager(t *testing.T) {
	for want, args := range map[string][]string{
		"":  {"--leader-elect", "--latch-image"},
		"a": {"--latch-image=a", "--leader-elect"},
		"b": {"--latch-image", "b", "--leader-elect"},
		"c": {"--latch-image=a", "--latch-image", "b", "--latch-image=c"},
	} {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: managerName}}
		deployment.Spec.Template.Spec.Containers = []corev1.Container{{Args: args}}
		s := &Source{client: fake.NewClientBuilder().WithObjects(deployment).Build()}
		if got, err := s.LatchImage(t.Context(), "ns"); err != nil || got != want {
			t.Errorf("%v: got %q, %v, want %q", args, got, err, want)
		}
	}
}

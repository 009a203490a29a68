package podgate_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/testenv"
)

// ownCluster is the test's own control plane with everything that the chart installs, and a
// manager.
func ownCluster(t *testing.T) *testenv.Cluster {
	t.Helper()
	c := testenv.StartCluster(t)
	if err := errors.Join(served(t.Context(), c), install(t.Context(), c)); err != nil {
		t.Fatal(err)
	}
	manage(t, c, latchImage)
	return c
}

// manage runs a manager until the test ends.
func manage(t *testing.T, c *testenv.Cluster, latch string) {
	t.Helper()
	stop, err := runManager(c, latch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	})
}

// The controllers of Kubernetes create these pods.
func TestPodsOfWorkloadsAreCreatedWithTheGate(t *testing.T) {
	t.Parallel()
	c := ownCluster(t)
	if err := c.StartControllerManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := stageOn(t, c)
	rule := s.rule("workload", startHold)
	s.enforce(rule)
	for kind, workload := range s.workloads() {
		if err := s.Client.Create(t.Context(), workload); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, "a pod of a "+kind, func(ctx context.Context) error {
			var list corev1.PodList
			if err := s.Client.List(ctx, &list, client.InNamespace(s.id), client.MatchingLabels{"kind": kind}); err != nil {
				return err
			}
			if len(list.Items) == 0 {
				return errors.New("there is none")
			}
			pod := &list.Items[0]
			if gates, noted := gatesOf(pod); !slices.Equal(gates, []string{rule.Spec.Gate}) || noted != rule.Spec.Gate || latchOf(pod) == nil {
				t.Fatalf("%s has the gates %v, the note %q and the init containers %v", pod.Name, gates, noted, pod.Spec.InitContainers)
			}
			return nil
		})
	}
}

// workloads are objects that create pods, by kind.
func (s *stage) workloads() map[string]client.Object {
	meta := func(kind string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: s.id, Name: kind, Labels: map[string]string{"kind": kind, "app": "workload"}}
	}
	template := func(kind string, restart corev1.RestartPolicy) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: meta(kind).Labels},
			Spec:       corev1.PodSpec{RestartPolicy: restart, Containers: []corev1.Container{{Name: "app", Image: "app"}}},
		}
	}
	choice := func(kind string) *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: meta(kind).Labels} }
	const deployment, set, job = "deployment", "statefulset", "job"
	return map[string]client.Object{
		deployment: &appsv1.Deployment{ObjectMeta: meta(deployment), Spec: appsv1.DeploymentSpec{
			Selector: choice(deployment), Template: template(deployment, corev1.RestartPolicyAlways)}},
		set: &appsv1.StatefulSet{ObjectMeta: meta(set), Spec: appsv1.StatefulSetSpec{
			ServiceName: set, Selector: choice(set), Template: template(set, corev1.RestartPolicyAlways)}},
		job: &batchv1.Job{ObjectMeta: meta(job), Spec: batchv1.JobSpec{Template: template(job, corev1.RestartPolicyNever)}},
	}
}

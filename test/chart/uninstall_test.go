package chart_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/testenv"
)

// TestUninstallAgain: no node could run the cleanup. docs/how-to/uninstall.md describes the next steps.
func TestUninstallAgain(t *testing.T) {
	t.Parallel()
	for _, binary := range helms {
		t.Run(binary, func(t *testing.T) {
			t.Parallel()
			c := emptyCluster(t)
			h := helmOf(t, c, binary)

			job := cleanupHangs(t, c, h)
			if err := h.try(t, "upgrade", ""); err == nil || !strings.Contains(err.Error(), "no deployed releases") {
				t.Errorf("upgrade of a release that is being uninstalled: %v", err)
			}
			ended := make(chan error, 1)
			go func() { ended <- h.try(t, "uninstall", "") }()
			complete(t, c, job.UID)
			if err := <-ended; err != nil {
				t.Errorf("uninstalling again: %v", err)
			}
			wantGone(t, c, managerDeployment(), cleanupJob(), cleanupAccount())

			cleanupHangs(t, c, h)
			stopHalfWay(t, c)
			h.run(t, "rollback", "", append(rollbackFlags[binary], "1")...)
			h.run(t, "upgrade", "image: {registry: fixed.example.com}")
			wantWhole(t, c)
			h.run(t, "uninstall", "", "--no-hooks")
			wantGone(t, c, managerDeployment(), cleanupAccount())
			if err := c.Client.Delete(t.Context(), cleanupJob(), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				t.Errorf("after the uninstallation: %v; want only the Job left", err)
			}
			h.run(t, "install", "")
		})
	}
}

func managerDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "readygate-manager"}}
}

func cleanupJob() *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "readygate-cleanup"}}
}

func cleanupAccount() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "readygate-cleanup"}}
}

// cleanupHangs installs the release and fails to uninstall it: no node runs the Job, which is
// returned. All other objects of the release are left.
func cleanupHangs(t *testing.T, c *testenv.Cluster, h helm) *batchv1.Job {
	t.Helper()
	h.run(t, "install", "")
	if err := h.try(t, "uninstall", "", "--timeout", "2s"); err == nil {
		t.Fatal("the release is uninstalled although the cleanup did not run")
	}
	job := cleanupJob()
	for _, obj := range []client.Object{job, managerDeployment()} {
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Fatalf("after the failed uninstallation: %v", err)
		}
	}
	return job
}

// complete sets the Job that replaces the old one to Complete, as a kubelet and the Job controller would.
func complete(t *testing.T, c *testenv.Cluster, old types.UID) {
	t.Helper()
	testenv.Eventually(t, "a new cleanup Job", func(ctx context.Context) error {
		job := cleanupJob()
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		if job.UID == old {
			return errors.New("the Job is the old one")
		}
		now := metav1.Now()
		job.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
		}}
		return c.Client.Status().Update(ctx, job)
	})
}

// stopHalfWay performs the steps of a cleanup that then fails.
func stopHalfWay(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	none := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))
	if err := c.Client.SubResource("scale").Patch(t.Context(), managerDeployment(), none, client.WithSubResourceBody(&autoscalingv1.Scale{})); err != nil {
		t.Fatal(err)
	}
	if !c.ServesMutatingPolicies(t) {
		return
	}
	if err := c.Client.Delete(t.Context(), policyForNodesOf(t, c)); err != nil {
		t.Fatal(err)
	}
}

// wantWhole checks that what stopHalfWay has removed is restored.
func wantWhole(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	if c.ServesMutatingPolicies(t) {
		policyForNodesOf(t, c)
	}
	manager := managerDeployment()
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(manager), manager); err != nil {
		t.Fatal(err)
	}
	if *manager.Spec.Replicas == 0 || !strings.HasPrefix(manager.Spec.Template.Spec.Containers[0].Image, "fixed.example.com/") {
		t.Errorf("the manager has %d replicas of %s", *manager.Spec.Replicas, manager.Spec.Template.Spec.Containers[0].Image)
	}
}

func wantGone(t *testing.T, c *testenv.Cluster, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s exists: %v", obj, obj.GetName(), err)
		}
	}
}

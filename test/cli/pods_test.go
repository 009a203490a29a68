package cli_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/plugin/view"
	"github.com/readygate/readygate/internal/testenv"
)

// gatedPod creates a pod on a node with the well-known gate, which podgate has set to this status.
func gatedPod(t *testing.T, c *testenv.Cluster, name, app, node string, status corev1.ConditionStatus) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			NodeName: node, ReadinessGates: []corev1.PodReadinessGate{{ConditionType: podv1alpha1.DefaultGate}},
			Containers: []corev1.Container{{Name: "c", Image: "i"}},
		},
	}
	c.Create(t, pod)
	base := pod.DeepCopy()
	since := metav1.NewTime(time.Now().Add(-3 * time.Minute))
	pod.Status.PodIP, pod.Status.PodIPs = "10.0.0.7", []corev1.PodIP{{IP: "10.0.0.7"}}
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: since},
		{Type: podv1alpha1.DefaultGate, Status: status, Reason: podv1alpha1.ReasonWaiting, Message: "waiting for policy (the pod has no condition a.b/programmed)", LastTransitionTime: since},
	}
	if status == corev1.ConditionTrue {
		pod.Status.Conditions[1].Reason = podv1alpha1.ReasonAllReady
		pod.Annotations = map[string]string{podv1alpha1.LatchAnnotation: "open 10.0.0.7 - " + since.UTC().Format(time.RFC3339)}
	}
	if err := c.Client.Status().Patch(t.Context(), pod, client.StrategicMergeFrom(base)); err != nil {
		t.Fatal(err)
	}
}

func TestPodsThatWait(t *testing.T) {
	c, name := cluster(t), testenv.NameOf(t)
	c.Create(t, &podv1alpha1.PodReadinessRule{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: podv1alpha1.PodReadinessRuleSpec{
			PodSelector: &podv1alpha1.LabelSelector{MatchLabels: map[string]podv1alpha1.LabelValue{"app": podv1alpha1.LabelValue(name)}},
			Components:  []podv1alpha1.Component{{Name: "policy", PodCondition: &podv1alpha1.ConditionComponent{Type: "a.b/programmed"}}},
		},
	})
	c.Create(t, testenv.Node(name, nil))
	gatedPod(t, c, name+"-waits", name, name, corev1.ConditionFalse)
	gatedPod(t, c, name+"-open", name, name, corev1.ConditionTrue)
	gatedPod(t, c, name+"-other", "other", name, corev1.ConditionFalse)
	u := admin(t, c)

	t.Run("pods", func(t *testing.T) {
		u.readiness(t, "pods", "-A", "--node", name).expect(t, 0, name+"-waits", "policy (the pod has no condition a.b/programmed); node "+name+" has no live agent", "2 pods that rules select: 1 waiting, 1 open, 0 ungated")
		var got view.Pods
		u.readiness(t, "pods", "-n", "default", "--node", name, "--all", "-o", "json").parse(t, &got)
		if len(got.Pods) != 2 || got.Pods[0].Name != name+"-waits" || got.Pods[0].State != view.PodWaiting || got.Pods[1].State != view.PodOpen {
			t.Errorf("got %+v", got)
		}
		u.readiness(t, "pods", "-A", "--node", "nowhere").expect(t, 1, `error: there is no node "nowhere"`, "kubectl get nodes")
		u.readiness(t, "pods", "-n", "nowhere").expect(t, 1, `error: there is no namespace "nowhere"`, "kubectl get namespaces")
	})
	t.Run("why", func(t *testing.T) {
		u.readiness(t, "why", "pod/"+name+"-waits").expect(t, 0, "has waited 3m", "missing  policy, pod condition a.b/programmed: the pod has no condition a.b/programmed", "node "+name+" has no agent", "No agent has renewed a Lease for node "+name, "podgate.enabled=true")
		u.readiness(t, "why", name+"-waits").expect(t, 1, `error: there is no node "`+name+`-waits"`, "if it is a pod: kubectl readiness why pod/"+name+"-waits, with -n for its namespace")
		u.readiness(t, "why", "pods", name+"-other", "-n", "default").expect(t, 0, "no rule selects default/"+name+"-other")
		u.readiness(t, "why", "pod/missing").expect(t, 1, `error: there is no pod "missing" in namespace "default"`, "kubectl get pods -n default")
	})
	t.Run("status", func(t *testing.T) {
		u.readiness(t, "status").expect(t, 0, "UNGATED", name, podv1alpha1.DefaultGate, name+" is ")
		var got struct {
			PodRules []view.PodRule `json:"podRules"`
		}
		u.readiness(t, "status", "-o", "json").parse(t, &got)
		if !slices.ContainsFunc(got.PodRules, func(r view.PodRule) bool { return r.Name == name && slices.Equal(r.Components, []string{"policy"}) }) {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("completion", func(t *testing.T) {
		u.readiness(t, "__complete", "why", "pod/").expect(t, 0, "pod/"+name+"-waits\n")
	})
	t.Run("with few rights", func(t *testing.T) {
		reader := reader(t, c, "pods", "nodes", "nodereadinessrules")
		reader.readiness(t, "status").expect(t, 0, "Could not be read: PodReadinessRules: cannot list podreadinessrules: permission denied")
		reader.readiness(t, "pods", "-n", "default").expect(t, 1, "error: cannot list podreadinessrules", "permission denied: ask for a role")
	})
}

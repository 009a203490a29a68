package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/boot"
	"github.com/readygate/readygate/internal/core/reporters"
	"github.com/readygate/readygate/internal/scenario"
)

// apply creates or changes a rule, like kubectl apply --server-side.
func (s *session) apply(ctx context.Context, apply *scenario.Apply) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.script.rules[apply])
	if err != nil {
		return err
	}
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	rule := &unstructured.Unstructured{Object: content}
	err = s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(rule), fieldOwner)
	if apply.Refused != "" {
		return s.expectRefusal(apply.Refused, err)
	}
	if err != nil {
		return fmt.Errorf("applying rule %s: %w", rule.GetName(), err)
	}
	return nil
}

// expectRefusal expects that the API server rejected a rule with an error that contains a text.
func (s *session) expectRefusal(text string, err error) error {
	p := proof{text: "the API server rejects the rule with an error that contains " + text}
	switch {
	case err == nil:
		p.err = errors.New("the API server accepted the rule")
	case !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), text):
		p.err = fmt.Errorf("the API server returned: %w", err)
	}
	return s.prove(p)
}

func (s *session) deleteRule(ctx context.Context, name string) error {
	if err := s.client.Delete(ctx, s.script.ruleNamed(name)); err != nil {
		return fmt.Errorf("deleting rule %s: %w", name, err)
	}
	return nil
}

// join creates a node with a reporter, and with an agent if the scenario has rules for pods.
func (s *session) join(ctx context.Context, name string, join *scenario.Join) error {
	reported := s.script.Reported(join)
	if len(reported) > 0 {
		if err := s.reporters.install(name, reported); err != nil {
			return err
		}
	}
	node := s.newNode(name, join.Labels)
	node.Spec.Taints = taintsOf(join.Taints)
	s.monitor.joins(name, taintsOf(join.Taints))
	if err := s.create(ctx, node); err != nil {
		return err
	}
	s.joined = append(s.joined, name)
	if len(s.script.podRules) > 0 {
		if err := s.runAgent(ctx, node); err != nil {
			return err
		}
	}
	if len(reported) == 0 || !join.HasReporter() {
		return nil
	}
	return s.reporters.run(ctx, name, true)
}

// newNode returns a node of the scenario. Agents read the boot ID of this machine, so with agents the nodes have it too.
func (s *session) newNode(name string, labels map[string]string) *corev1.Node {
	bootID := string(uuid.NewUUID())
	if len(s.script.podRules) > 0 {
		bootID = boot.ID()
	}
	all := map[string]string{corev1.LabelHostname: name}
	maps.Copy(all, labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all},
		Status:     corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: bootID}},
	}
}

// taintsOf parses the taints of the scenario: key=value:effect.
func taintsOf(texts []string) []corev1.Taint {
	var taints []corev1.Taint
	for _, text := range texts {
		pair, effect, _ := strings.Cut(text, ":")
		key, value, _ := strings.Cut(pair, "=")
		taints = append(taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	return taints
}

// nodeCPU is the CPU that pods can share on a node of the demo, in millicores: a little less than
// KWOK reports as allocatable.
const nodeCPU = 31000

// deploy creates a Deployment.
func (s *session) deploy(ctx context.Context, deploy *scenario.Deploy) error {
	pods := podTemplate(deploy.Name)
	pods.Spec.NodeSelector = deploy.Where
	if deploy.PerNode != nil {
		pods.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(nodeCPU / *deploy.PerNode), resource.DecimalSI)}
	}
	return s.create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: deploy.Name, Labels: pods.Labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(deploy.Pods)), //nolint:gosec // the scenario is small
			Selector: &metav1.LabelSelector{MatchLabels: pods.Labels},
			Template: pods,
		},
	})
}

// restartedAt is the annotation that kubectl rollout restart sets.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// daemonSet creates a DaemonSet, or restarts an existing one. It has no pod on a node whose taints it does not
// tolerate.
func (s *session) daemonSet(ctx context.Context, d *scenario.DaemonSet) error {
	ds := newDaemonSet(d.Name, d.Labels)
	if d.Reports == "" {
		return s.patch(ctx, ds, fieldOwner, map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
			"annotations": map[string]string{restartedAt: time.Now().Format(time.RFC3339)},
		}}}})
	}
	ds.Annotations = map[string]string{reporters.ReportsAnnotation: d.Reports}
	return s.create(ctx, ds)
}

func newDaemonSet(name string, labels map[string]string) *appsv1.DaemonSet {
	pods := podTemplate(name)
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: labels},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: pods.Labels}, Template: pods},
	}
}

// appLabel is the label of pods with the name of their Deployment or DaemonSet.
const appLabel = "app"

// podTemplate returns a template of pods that tolerate no taint of a rule.
func podTemplate(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{appLabel: name}},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{{Name: "app", Image: "registry.k8s.io/pause:3.10"}},
			AutomountServiceAccountToken:  ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To(int64(0)),
		},
	}
}

// mutated reports, from a dry-run create, whether a rule changes a new object of this kind with these labels: adds a
// taint to a Node, a gate to a Pod, or a toleration to a DaemonSet.
func (s *session) mutated(ctx context.Context, kind string, labels map[string]string) (bool, error) {
	const name = "readygate-dry-run"
	switch kind {
	case "Node":
		node := s.newNode(name, labels)
		err := s.client.Create(ctx, node, client.DryRunAll)
		return len(ofRules(node)) > 0, err
	case "Pod":
		template := podTemplate(name)
		maps.Copy(template.Labels, labels)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: template.Labels}, Spec: template.Spec}
		err := s.client.Create(ctx, pod, client.DryRunAll)
		return len(pod.Spec.ReadinessGates) > 0, err
	default:
		ds := newDaemonSet(name, labels)
		err := s.client.Create(ctx, ds, client.DryRunAll)
		return slices.ContainsFunc(ds.Spec.Template.Spec.Tolerations, func(t corev1.Toleration) bool { return ofRule(t.Key) }), err
	}
}

package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/scenario"
)

const fieldOwner = client.FieldOwner("readygate-demo")

// apply makes or changes a rule, as kubectl apply --server-side does.
func (d *player) apply(ctx context.Context, apply *scenario.Apply) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d.script.rules[apply])
	if err != nil {
		return err
	}
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	rule := &unstructured.Unstructured{Object: content}
	err = d.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(rule), fieldOwner)
	if apply.Refused != "" {
		return d.refused(apply, err)
	}
	if err != nil {
		return fmt.Errorf("applying rule %s: %w", rule.GetName(), err)
	}
	return nil
}

// refused expects that the API server said no, and why.
func (d *player) refused(apply *scenario.Apply, err error) error {
	p := proof{text: "the API server refuses it, naming " + apply.Refused}
	switch {
	case err == nil:
		p.err = errors.New("the API server took it")
	case !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), apply.Refused):
		p.err = fmt.Errorf("the API server says: %w", err)
	}
	d.prove(p)
	if p.err != nil {
		return errUnmet
	}
	return nil
}

func (d *player) deleteRule(ctx context.Context, name string) error {
	if err := d.client.Delete(ctx, d.script.ruleNamed(name)); err != nil {
		return fmt.Errorf("deleting rule %s: %w", name, err)
	}
	return nil
}

// join lets a node join, with a reporter on it, and an agent if the scenario has rules for pods.
func (d *player) join(ctx context.Context, node *scenario.Node) error {
	obj := d.newNode(node.Name, node.Labels, taintsOf(node.Taints))
	if len(node.Components) > 0 {
		if err := d.reporters.install(node.Name, node.Components); err != nil {
			return err
		}
	}
	d.monitor.joins(node.Name, obj.DeepCopy().Spec.Taints)
	if err := d.create(ctx, obj); err != nil {
		return err
	}
	d.joined = append(d.joined, node.Name)
	if err := d.agents.run(ctx, obj); err != nil {
		return err
	}
	if !node.Reporter || len(node.Components) == 0 {
		return nil
	}
	return d.reporters.run(ctx, node.Name, true)
}

// newNode is a node of the scenario.
func (d *player) newNode(name string, labels map[string]string, taints []corev1.Taint) *corev1.Node {
	all := map[string]string{corev1.LabelHostname: name}
	maps.Copy(all, labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all},
		Spec:       corev1.NodeSpec{Taints: taints},
		Status:     corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: d.bootID()}},
	}
}

// taintsOf reads taints as the scenario has them: key=value:effect.
func taintsOf(texts []string) []corev1.Taint {
	var taints []corev1.Taint
	for _, text := range texts {
		pair, effect, _ := strings.Cut(text, ":")
		key, value, _ := strings.Cut(pair, "=")
		taints = append(taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	return taints
}

// nodeCPU is, in thousandths, what pods can share on a node of the demo: a little less than
// KWOK says that there is.
const nodeCPU = 31000

// deploy creates a Deployment.
func (d *player) deploy(ctx context.Context, deploy *scenario.Deploy) error {
	pods := podTemplate(deploy.Name, deploy.Where)
	if deploy.PerNode != nil {
		pods.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(nodeCPU / *deploy.PerNode), resource.DecimalSI)}
	}
	return d.create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: deploy.Name, Labels: pods.Labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(deploy.Pods)), //nolint:gosec // the scenario is small
			Selector: selectorOf(deploy.Name),
			Template: pods,
		},
	})
}

// appLabel is on the pods of a Deployment or DaemonSet, and is its name.
const appLabel = "app"

func selectorOf(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: name}}
}

// podTemplate is for pods that run on nodes with these labels and tolerate no taint of a rule.
func podTemplate(name string, where map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{appLabel: name}},
		Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{{Name: "app", Image: "registry.k8s.io/pause:3.10"}},
			NodeSelector:                  where,
			AutomountServiceAccountToken:  ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To(int64(0)),
		},
	}
}

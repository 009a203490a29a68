package demo

import (
	"context"
	"log/slog"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/scenario"
)

// podComponents simulates the components that set a condition on pods: when a pod has a sandbox, the
// component starts to program it, and sets a condition when it has finished. For a new sandbox it first sets the
// condition to False.
type podComponents struct {
	components map[string]scenario.Component // those with podCondition
	write      writeCondition
	programs   *errgroup.Group

	mu    sync.Mutex
	up    map[place]bool
	pods  map[string]*corev1.Pod // by name
	begun map[program]bool       // and not dropped
}

// writeCondition sets a condition of a pod with the component as the field owner.
type writeCondition func(ctx context.Context, component string, pod *corev1.Pod, condition corev1.PodCondition) error

// place is a component on a node.
type place struct{ node, component string }

// program is the programming of one sandbox of a pod by a component.
type program struct {
	pod       types.UID
	component string
	sandbox   int64 // creation time of the sandbox, in seconds
}

func newPodComponents(components map[string]scenario.Component, write writeCondition, programs *errgroup.Group) *podComponents {
	p := &podComponents{
		components: map[string]scenario.Component{}, write: write, programs: programs,
		up: map[place]bool{}, pods: map[string]*corev1.Pod{}, begun: map[program]bool{},
	}
	for name, component := range components {
		if component.PodCondition != "" {
			p.components[name] = component
		}
	}
	return p
}

// setPodCondition writes one condition and nothing else, as the docs require from components.
func (c *cluster) setPodCondition(ctx context.Context, component string, pod *corev1.Pod, condition corev1.PodCondition) error {
	obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	err := c.patch(ctx, obj, client.FieldOwner(component), map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status":   map[string]any{"conditions": []corev1.PodCondition{condition}},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // deleted, or another pod of the same name
		return nil
	}
	return err
}

// sets reports whether a component sets a condition of pods.
func (p *podComponents) sets(component string) bool {
	_, sets := p.components[component]
	return sets
}

// setHealth sets a component on a node up or down. A component that is down sets no conditions; its earlier conditions
// stay.
func (p *podComponents) setHealth(ctx context.Context, node, component string, is scenario.Health) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up[place{node, component}] = is == scenario.Up
	for _, pod := range p.pods {
		if pod.Spec.NodeName == node {
			p.startPrograms(ctx, pod)
		}
	}
}

func (p *podComponents) observe(ctx context.Context, pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pods[pod.Name] = pod
	p.startPrograms(ctx, pod)
}

func (p *podComponents) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pods, name)
}

// startPrograms starts a program for each component without one for the pod's sandbox.
func (p *podComponents) startPrograms(ctx context.Context, pod *corev1.Pod) {
	since := podrule.SandboxSince(pod)
	if since.IsZero() || pod.DeletionTimestamp != nil || ctx.Err() != nil {
		return
	}
	for name := range p.components {
		one := program{pod: pod.UID, component: name, sandbox: since.Unix()}
		if !p.up[place{pod.Spec.NodeName, name}] || p.begun[one] {
			continue
		}
		p.begun[one] = true
		p.programs.Go(func() error {
			p.program(ctx, one, pod)
			return nil
		})
	}
}

// program sets the condition of a pod after the time in takes, unless the component went
// down meanwhile or the sandbox has changed.
func (p *podComponents) program(ctx context.Context, one program, pod *corev1.Pod) {
	component := p.components[one.component]
	set := func(status corev1.ConditionStatus, reason string) { // until it is written or the context ends
		_ = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
			err := p.write(ctx, one.component, pod, corev1.PodCondition{
				Type: corev1.PodConditionType(component.PodCondition), Status: status, Reason: reason, LastTransitionTime: metav1.Now(),
			})
			if err != nil {
				slog.Error("Setting the condition of a component failed; retrying", "pod", pod.Name, "error", err)
			}
			return err == nil, nil
		})
	}
	if is := conditionOf(pod, component.PodCondition); is != nil && is.Status == corev1.ConditionTrue {
		set(corev1.ConditionFalse, "Programming")
	}
	if component.Takes != nil {
		_ = sleep(ctx, component.Takes.Duration) // if the context ends, no condition is set
	}
	if p.isCurrent(one, pod) {
		set(corev1.ConditionTrue, "Programmed")
	}
}

// isCurrent reports whether the sandbox is unchanged and the component up. If not, it drops the program, which starts
// again when the component is up.
func (p *podComponents) isCurrent(one program, pod *corev1.Pod) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	is, there := p.pods[pod.Name]
	if there && is.UID == one.pod && podrule.SandboxSince(is).Unix() == one.sandbox && p.up[place{pod.Spec.NodeName, one.component}] {
		return true
	}
	delete(p.begun, one)
	return false
}

// conditionOf returns the pod's condition of a type; nil if it has none.
func conditionOf(pod *corev1.Pod, kind string) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if string(pod.Status.Conditions[i].Type) == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

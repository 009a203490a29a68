package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/scenario"
)

// podComponents are the components that set a condition on pods, played by the demo as their authors
// would write them: as soon as a pod has a sandbox the component begins to program it, and sets a
// condition when it is done. For a new sandbox it first sets the condition to False.
type podComponents struct {
	components map[string]scenario.Component // those with podCondition
	// write sets a condition of a pod, in the name of a component.
	write func(ctx context.Context, component string, pod *corev1.Pod, condition corev1.PodCondition) error

	mu       sync.Mutex
	up       map[place]bool
	pods     map[types.NamespacedName]*corev1.Pod
	programs map[program]bool // begun, and not given up
	stopped  bool
	ended    sync.WaitGroup
}

// place is a component on a node.
type place struct{ node, component string }

// program is what a component does for one sandbox of a pod.
type program struct {
	pod       types.UID
	component string
	sandbox   int64 // since when it is there, in seconds
}

func newPodComponents(components map[string]scenario.Component) *podComponents {
	p := &podComponents{
		components: map[string]scenario.Component{}, up: map[place]bool{}, pods: map[types.NamespacedName]*corev1.Pod{}, programs: map[program]bool{},
	}
	for name, component := range components {
		if component.PodCondition != "" {
			p.components[name] = component
		}
	}
	return p
}

// follow watches the pods of the scenario until the context is over. It returns when all are known.
func (p *podComponents) follow(ctx context.Context, config *rest.Config) error {
	if len(p.components) == 0 {
		return nil
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	p.write = writerOf(api)
	factory := informers.NewSharedInformerFactoryWithOptions(api, 0, informers.WithNamespace(Namespace))
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { p.observe(ctx, obj.(*corev1.Pod)) },
		UpdateFunc: func(_, obj any) { p.observe(ctx, obj.(*corev1.Pod)) },
		DeleteFunc: func(obj any) { p.forget(obj) },
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	return ctx.Err()
}

// writerOf writes one condition and nothing else, as the docs require of components.
func writerOf(api kubernetes.Interface) func(context.Context, string, *corev1.Pod, corev1.PodCondition) error {
	return func(ctx context.Context, component string, pod *corev1.Pod, condition corev1.PodCondition) error {
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": pod.UID},
			"status":   map[string]any{"conditions": []corev1.PodCondition{condition}},
		})
		if err != nil {
			return err
		}
		_, err = api.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: component}, "status")
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // gone, or another one of the same name
			return nil
		}
		return err
	}
}

// sets reports whether a component sets a condition of pods.
func (p *podComponents) sets(component string) bool {
	_, sets := p.components[component]
	return sets
}

// turn joinTaints a component on a node up, or down. One that is down begins nothing and ends nothing,
// and takes nothing back.
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
	p.pods[keyOf(pod)] = pod
	p.startPrograms(ctx, pod)
}

func (p *podComponents) forget(obj any) {
	key, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pods, types.NamespacedName{Namespace: key.Namespace, Name: key.Name})
}

func keyOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// startPrograms starts a program for each component that has none for the sandbox of this pod.
func (p *podComponents) startPrograms(ctx context.Context, pod *corev1.Pod) {
	since := podrule.SandboxSince(pod)
	if since.IsZero() || pod.DeletionTimestamp != nil || p.stopped || ctx.Err() != nil {
		return
	}
	for name := range p.components {
		one := program{pod: pod.UID, component: name, sandbox: since.Unix()}
		if !p.up[place{pod.Spec.NodeName, name}] || p.programs[one] {
			continue
		}
		p.programs[one] = true
		p.ended.Go(func() { p.program(ctx, one, pod) })
	}
}

// Reasons of the conditions that components set.
const (
	reasonProgramming = "Programming"
	reasonProgrammed  = "Programmed"
)

// program programs a pod: after the time that the component takes it sets the condition, unless the component went
// down meanwhile or the sandbox is gone.
func (p *podComponents) program(ctx context.Context, one program, pod *corev1.Pod) {
	component := p.components[one.component]
	if said := conditionOf(pod, component.PodCondition); said != nil && said.Status == corev1.ConditionTrue {
		p.setCondition(ctx, one, pod, corev1.ConditionFalse, reasonProgramming)
	}
	if component.Takes != nil {
		_ = sleep(ctx, component.Takes.Duration) // after the end, no condition is set
	}
	if p.current(one, pod) {
		p.setCondition(ctx, one, pod, corev1.ConditionTrue, reasonProgrammed)
	}
}

// current reports whether the sandbox is the same and the component up. If not, the program is dropped, and starts
// again when the component is up.
func (p *podComponents) current(one program, pod *corev1.Pod) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	is, there := p.pods[keyOf(pod)]
	if there && is.UID == one.pod && podrule.SandboxSince(is).Unix() == one.sandbox && p.up[place{pod.Spec.NodeName, one.component}] {
		return true
	}
	delete(p.programs, one)
	return false
}

// setCondition sets the condition, and tries again until it is written or the context ends.
func (p *podComponents) setCondition(ctx context.Context, one program, pod *corev1.Pod, status corev1.ConditionStatus, reason string) {
	_ = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		err := p.write(ctx, one.component, pod, corev1.PodCondition{
			Type: corev1.PodConditionType(p.components[one.component].PodCondition), Status: status, Reason: reason, LastTransitionTime: metav1.Now(),
		})
		if err != nil {
			slog.Error("setting the condition of a component", "error", fmt.Errorf("pod %s: %w", pod.Name, err))
		}
		return err == nil, nil
	})
}

// stop waits until no program runs. Programs run until the context of follow ends.
func (p *podComponents) stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.ended.Wait()
}

// conditionOf is the pod's condition of a type; nil if it has none.
func conditionOf(pod *corev1.Pod, kind string) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if string(pod.Status.Conditions[i].Type) == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

package podgate

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
)

// Sources are the watches of an agent: the pods of its node, the node, the rules, and the labels of
// namespaces.
type Sources struct {
	Pods, node, rules, namespaces cache.SharedIndexInformer

	// rulesClient lists and watches rules, for the cache and without it.
	rulesClient *cache.ListWatch

	compiled atomic.Pointer[[]*podrule.Rule]
}

// NewSources returns the sources of a node's agent, not started yet.
func NewSources(config *rest.Config, api kubernetes.Interface, node string) (*Sources, error) {
	rules, err := newRulesClient(config)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	core, namespaces := api.CoreV1().RESTClient(), meta.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	s := &Sources{rulesClient: rules}
	s.compiled.Store(new([]*podrule.Rule))
	s.Pods = informer(&corev1.Pod{}, cache.NewListWatchFromClient(core, "pods", metav1.NamespaceAll, fields.OneTermEqualSelector("spec.nodeName", node)))
	s.node = informer(&corev1.Node{}, cache.NewListWatchFromClient(core, "nodes", metav1.NamespaceAll, fields.OneTermEqualSelector(metav1.ObjectNameField, node)))
	s.rules = informer(&v1alpha1.PodReadinessRule{}, rules)
	s.namespaces = informer(&metav1.PartialObjectMetadata{}, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return namespaces.List(ctx, o)
		},
		WatchFuncWithContext: namespaces.Watch,
	})
	return s, errors.Join(s.Pods.SetTransform(stripped), s.node.SetTransform(stripped), s.namespaces.SetTransform(stripped), s.rules.SetTransform(stripped))
}

func informer(kind runtime.Object, source cache.ListerWatcher) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(source, kind, 0, cache.Indexers{})
}

func newRulesClient(config *rest.Config) (*cache.ListWatch, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.GroupVersion
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return cache.NewListWatchFromClient(client, "podreadinessrules", metav1.NamespaceAll, fields.Everything()), nil
}

// stripped returns an object with only the fields that decisions need.
func stripped(obj any) (any, error) {
	switch o := obj.(type) {
	case *corev1.Pod:
		return strip(o), nil
	case *corev1.Node:
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion},
			Status:     corev1.NodeStatus{Conditions: o.Status.Conditions},
		}, nil
	case *metav1.PartialObjectMetadata:
		o.ManagedFields, o.Annotations = nil, nil
	case *v1alpha1.PodReadinessRule:
		o.ManagedFields, o.Status = nil, v1alpha1.PodReadinessRuleStatus{}
	}
	return obj, nil
}

// strip returns a new pod with only the fields that decisions need, so that the full object can be garbage
// collected.
func strip(pod *corev1.Pod) *corev1.Pod {
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName, HostNetwork: pod.Spec.HostNetwork, ReadinessGates: pod.Spec.ReadinessGates, RuntimeClassName: pod.Spec.RuntimeClassName, OS: pod.Spec.OS},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions, PodIP: pod.Status.PodIP, PodIPs: pod.Status.PodIPs, StartTime: pod.Status.StartTime},
	}
	if started := podrule.Started(pod); !started.IsZero() {
		running := &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(started)}
		kept.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: running}}}
	}
	for _, key := range []string{v1alpha1.GatesAnnotation, v1alpha1.LatchAnnotation, corev1.MirrorPodAnnotationKey} {
		if value, ok := pod.Annotations[key]; ok {
			if kept.Annotations == nil {
				kept.Annotations = map[string]string{}
			}
			kept.Annotations[key] = value
		}
	}
	kept.ManagedFields = gateWriters(pod)
	if os, ok := pod.Spec.NodeSelector[corev1.LabelOSStable]; ok {
		kept.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: os}
	}
	for i := range pod.Spec.InitContainers {
		if name := pod.Spec.InitContainers[i].Name; name == v1alpha1.LatchName {
			kept.Spec.InitContainers = []corev1.Container{{Name: name}}
		}
	}
	for i := range pod.Status.InitContainerStatuses {
		if status := &pod.Status.InitContainerStatuses[i]; status.Name == v1alpha1.LatchName {
			kept.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: status.Name, State: status.State}}
		}
	}
	return kept
}

// gateWriters returns the managed fields of gates that are True, for the event about a gate
// that another account has set to True.
func gateWriters(pod *corev1.Pod) []metav1.ManagedFieldsEntry {
	var kept []metav1.ManagedFieldsEntry
	for _, gate := range podrule.Ours(pod) {
		for _, entry := range pod.ManagedFields {
			if podrule.IsTrue(pod, gate) && entry.FieldsV1 != nil && !strings.HasPrefix(entry.Manager, v1alpha1.Reporter) && strings.Contains(entry.FieldsV1.GetRawString(), gate) {
				kept = append(kept, entry)
			}
		}
	}
	return kept
}

// start starts the watches. It calls one for a changed pod, and all for a change that affects the pods of a namespace
// or of all namespaces. It returns when the caches are synced.
func (s *Sources) start(ctx context.Context, one func(types.NamespacedName), all func(in string)) error {
	pod := func(obj any) {
		if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
			one(types.NamespacedName(name))
		}
	}
	pods := cache.ResourceEventHandlerFuncs{AddFunc: pod, UpdateFunc: func(_, obj any) { pod(obj) }, DeleteFunc: pod}
	every := func(string) { all(metav1.NamespaceAll) }
	rules := onChange(func(string) {
		s.compile()
		all(metav1.NamespaceAll)
	})
	for _, watched := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{{s.Pods, pods}, {s.node, onChange(every)}, {s.namespaces, onChange(all)}, {s.rules, rules}} {
		if _, err := watched.informer.AddEventHandler(watched.handler); err != nil {
			return err
		}
		go watched.informer.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), s.Pods.HasSynced, s.node.HasSynced, s.namespaces.HasSynced, s.rules.HasSynced) {
		return ctx.Err()
	}
	s.compile()
	return nil
}

// Synced returns an error unless all caches are synced.
func (s *Sources) Synced() error {
	for name, source := range map[string]cache.SharedIndexInformer{"pods": s.Pods, "the node": s.node, "namespaces": s.namespaces, "rules": s.rules} {
		if !source.HasSynced() {
			return fmt.Errorf("the cache of %s is not synced yet", name)
		}
	}
	return nil
}

// onChange calls f with the name of an object after a relevant change, not for the initial list.
func onChange(f func(name string)) cache.ResourceEventHandler {
	changed := func(obj any) {
		if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
			f(name.Name)
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if !initial {
				changed(obj)
			}
		},
		UpdateFunc: func(before, after any) {
			if !sameBut(before, after) {
				changed(after)
			}
		},
		DeleteFunc: changed,
	}
}

// sameBut reports whether two versions of an object are equal in all relevant fields.
func sameBut(before, after any) bool {
	switch b := before.(type) {
	case *corev1.Node:
		return reflect.DeepEqual(b.Status, after.(*corev1.Node).Status)
	case *metav1.PartialObjectMetadata:
		return reflect.DeepEqual(b.Labels, after.(*metav1.PartialObjectMetadata).Labels)
	case *v1alpha1.PodReadinessRule:
		a := after.(*v1alpha1.PodReadinessRule)
		return b.UID == a.UID && b.Generation == a.Generation && b.DeletionTimestamp.Equal(a.DeletionTimestamp)
	}
	return false
}

func (s *Sources) compile() {
	var objs []*v1alpha1.PodReadinessRule
	for _, obj := range s.rules.GetStore().List() {
		objs = append(objs, obj.(*v1alpha1.PodReadinessRule))
	}
	compiled := podrule.NewRules(objs)
	s.compiled.Store(&compiled)
}

// Rules returns all cached rules, oldest first.
func (s *Sources) Rules() []*podrule.Rule { return *s.compiled.Load() }

// LiveRules reads all rules from the API server.
func (s *Sources) LiveRules(ctx context.Context) ([]*podrule.Rule, error) {
	list, err := s.rulesClient.ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var objs []*v1alpha1.PodReadinessRule
	for i := range list.(*v1alpha1.PodReadinessRuleList).Items {
		objs = append(objs, &list.(*v1alpha1.PodReadinessRuleList).Items[i])
	}
	return podrule.NewRules(objs), nil
}

// Namespace returns the labels of a namespace; nil if it is not in the cache.
func (s *Sources) Namespace(name string) map[string]string {
	obj, ok, err := s.namespaces.GetStore().GetByKey(name)
	if err != nil || !ok {
		return nil
	}
	return obj.(*metav1.PartialObjectMetadata).Labels
}

// nodeObject returns the node; nil if it does not exist.
func (s *Sources) nodeObject() *corev1.Node {
	for _, obj := range s.node.GetStore().List() {
		return obj.(*corev1.Node)
	}
	return nil
}

// NodeConditions returns the conditions of the node.
func (s *Sources) NodeConditions() []corev1.NodeCondition {
	if node := s.nodeObject(); node != nil {
		return node.Status.Conditions
	}
	return nil
}

// Owner returns an owner reference to the node; nil if it does not exist.
func (s *Sources) Owner() *metav1.OwnerReference {
	node := s.nodeObject()
	if node == nil {
		return nil
	}
	return &metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
}

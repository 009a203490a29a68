package live

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/view"
)

// Fleet is the lines about all rules and nodes, kept up to date. A change of one node costs
// one line, whatever the number of nodes.
type Fleet struct {
	mu      sync.Mutex
	rules   map[string]*v1alpha1.NodeReadinessRule
	objects map[string]*corev1.Node
	pods    map[string]string // node that a pod is bound to, by namespace and name
	book    *view.Book
	nodes   map[string]view.Node
	tally   view.Tally
	podsOn  map[string]int
	waiting int
	unseen  []string

	followers map[*Follower]struct{}
}

// Snapshot is a fleet at one moment.
type Snapshot struct {
	Rules []view.Rule
	Nodes []view.Node // by name
	// Pods are the pods bound to each node, and Waiting those bound to none; nil if pods may
	// not be seen.
	Pods    map[string]int
	Waiting int
	Unseen  []string
}

// Follow keeps a fleet up to date until the context is over. It returns when everything has
// been seen once. Pods are counted if they are asked for and may be seen.
func (s *Source) Follow(ctx context.Context, pods bool) (*Fleet, error) {
	f := &Fleet{
		rules: map[string]*v1alpha1.NodeReadinessRule{}, objects: map[string]*corev1.Node{}, book: view.NewBook(nil),
		nodes: map[string]view.Node{}, tally: view.Tally{}, followers: map[*Follower]struct{}{},
	}
	if err := s.mayFollow(ctx, &v1alpha1.NodeReadinessRuleList{}, "list nodereadinessrules"); err != nil {
		return nil, err
	}
	if err := s.mayFollow(ctx, &corev1.NodeList{}, "list nodes"); err != nil {
		return nil, err
	}
	informers, err := cache.New(s.config, cache.Options{Scheme: s.scheme, DefaultTransform: lean})
	if err != nil {
		return nil, err
	}
	kinds := map[client.Object]toolscache.ResourceEventHandler{
		&v1alpha1.NodeReadinessRule{}: handler(f.putRule, f.dropRule),
		&corev1.Node{}:                handler(f.putNode, f.dropNode),
	}
	if pods {
		if err := s.mayFollow(ctx, &corev1.PodList{}, "list pods"); err != nil {
			f.unseen = append(f.unseen, err.Error())
		} else {
			f.pods, f.podsOn = map[string]string{}, map[string]int{}
			kinds[&corev1.Pod{}] = handler(f.putPod, f.dropPod)
		}
	}
	var synced []toolscache.InformerSynced
	for kind, handle := range kinds {
		informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, inWords(err)
		}
		registration, err := informer.AddEventHandler(handle)
		if err != nil {
			return nil, err
		}
		synced = append(synced, registration.HasSynced)
	}
	go func() { _ = informers.Start(ctx) }() // ends with the context
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, errors.Join(errors.New("the cluster did not answer"), ctx.Err())
	}
	return f, nil
}

// mayFollow says in words why objects cannot be listed. An informer would try for ever.
func (s *Source) mayFollow(ctx context.Context, list client.ObjectList, what string) error {
	err := s.client.List(ctx, list, client.Limit(1))
	if apierrors.IsResourceExpired(err) {
		return nil
	}
	return cannot(what, err)
}

// lean drops what no line needs; a node's images and managed fields are most of it.
func lean(obj any) (any, error) {
	if o, ok := obj.(client.Object); ok {
		o.SetManagedFields(nil)
	}
	switch o := obj.(type) {
	case *corev1.Node:
		o.Status.Images, o.Status.VolumesInUse, o.Status.VolumesAttached = nil, nil, nil
	case *corev1.Pod:
		o.Spec = corev1.PodSpec{NodeName: o.Spec.NodeName}
		o.Status = corev1.PodStatus{Phase: o.Status.Phase}
		o.Annotations, o.Labels, o.OwnerReferences = nil, nil, nil
	}
	return obj, nil
}

// handler calls put and drop with objects of one kind.
func handler[T client.Object](put, drop func(T)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { put(obj.(T)) },
		UpdateFunc: func(_, obj any) { put(obj.(T)) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			drop(obj.(T))
		},
	}
}

func (f *Fleet) putRule(rule *v1alpha1.NodeReadinessRule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules[rule.Name] = rule
	f.reread()
}

func (f *Fleet) dropRule(rule *v1alpha1.NodeReadinessRule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.rules, rule.Name)
	f.reread()
}

// reread looks at every node again, with the eyes of the rules as they are now.
func (f *Fleet) reread() {
	f.book = view.NewBook(slices.Collect(maps.Values(f.rules)))
	f.tally = view.Tally{}
	for name, obj := range f.objects {
		row := f.book.Node(obj)
		f.tally.Add(row)
		f.changed(name, row)
	}
	f.tell(func(c *changes) { c.rules = true })
}

func (f *Fleet) putNode(obj *corev1.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before, known := f.nodes[obj.Name]; known {
		f.tally.Remove(before)
	}
	f.objects[obj.Name] = obj
	row := f.book.Node(obj)
	f.tally.Add(row)
	f.changed(obj.Name, row)
}

// changed keeps the line and tells of it, if it differs: most changes of nodes are heartbeats.
func (f *Fleet) changed(name string, row view.Node) {
	if before, known := f.nodes[name]; known && reflect.DeepEqual(before, row) {
		return
	}
	f.nodes[name] = row
	f.tell(func(c *changes) {
		c.nodes[name] = struct{}{}
		c.rules = true // counts
	})
}

func (f *Fleet) dropNode(obj *corev1.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before, known := f.nodes[obj.Name]; known {
		f.tally.Remove(before)
	}
	delete(f.objects, obj.Name)
	delete(f.nodes, obj.Name)
	f.tell(func(c *changes) {
		c.nodes[obj.Name] = struct{}{}
		c.rules = true
	})
}

func (f *Fleet) putPod(pod *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := pod.Namespace + "/" + pod.Name
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		f.countPod(key, "", false)
		return
	}
	f.countPod(key, pod.Spec.NodeName, true)
}

func (f *Fleet) dropPod(pod *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.countPod(pod.Namespace+"/"+pod.Name, "", false)
}

// countPod counts a pod where it is now, and no longer where it was.
func (f *Fleet) countPod(key, node string, there bool) {
	before, known := f.pods[key]
	if known && there && before == node {
		return
	}
	if known {
		f.podOn(before, -1)
		delete(f.pods, key)
	}
	if there {
		f.podOn(node, 1)
		f.pods[key] = node
	}
}

func (f *Fleet) podOn(node string, by int) {
	if node == "" {
		f.waiting += by
	} else if f.podsOn[node] += by; f.podsOn[node] == 0 {
		delete(f.podsOn, node)
	}
	f.tell(func(c *changes) { c.pods[node] = struct{}{} })
}

// Snapshot is the fleet as it is now.
func (f *Fleet) Snapshot() Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Snapshot{
		Rules:   f.book.Rules(f.tally),
		Nodes:   slices.SortedFunc(maps.Values(f.nodes), func(a, b view.Node) int { return strings.Compare(a.Name, b.Name) }),
		Pods:    maps.Clone(f.podsOn),
		Waiting: f.waiting,
		Unseen:  slices.Clone(f.unseen),
	}
}

// Story is the story of a node as the fleet knows it, without events and writers.
func (f *Fleet) Story(name string, now time.Time) (view.Story, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	obj, known := f.objects[name]
	if !known {
		return view.Story{}, false
	}
	return f.book.Story(obj, nil, f.unseen, now), true
}

package live

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin/view"
)

// Fleet is the lines about all rules and nodes, kept up to date. A change of one node costs
// one line, whatever the number of nodes.
type Fleet struct {
	now     func() time.Time
	mu      sync.Mutex
	filling bool // nobody looks yet: lines are made when everything is there
	rules   map[string]*v1alpha1.NodeReadinessRule
	objects map[string]*corev1.Node
	book    *view.Book
	nodes   map[string]view.Node
	tally   view.Tally
	waiting map[string]struct{} // pods that are bound to no node, by namespace and name; nil if pods may not be seen
	gates   *gates              // nil if nothing is known of the gates of pods
	unseen  []string

	connection Connection
	silent     map[string]struct{} // kinds of objects of which nothing is heard

	followers map[*Follower]struct{}
}

// Snapshot is a fleet at one moment.
type Snapshot struct {
	Rules []view.Rule
	Nodes []view.Node // by name
	// Waiting is the number of pods that are bound to no node; nil if pods may not be seen.
	Waiting *int
	// Gated are pods that wait for a gate of a rule, those that wait for longest first, and PodRules is
	// how many rules of pods there are; nil and 0 if they may not be seen.
	Gated    []view.Pod
	PodRules int
	Unseen   []string
	// Connection says whether all this is still so.
	Connection Connection
}

// NewFleet is an empty fleet that follows no cluster: Put and Drop feed it.
func NewFleet(now func() time.Time) *Fleet {
	return &Fleet{
		now:   now,
		rules: map[string]*v1alpha1.NodeReadinessRule{}, objects: map[string]*corev1.Node{}, book: view.NewBook(nil),
		nodes: map[string]view.Node{}, tally: view.Tally{}, silent: map[string]struct{}{}, followers: map[*Follower]struct{}{},
		gates: &gates{
			rules: map[string]*podv1alpha1.PodReadinessRule{}, namespaces: map[string]map[string]string{},
			pods: map[string]*corev1.Pod{}, book: view.NewPodBook(nil), lines: map[string]view.Pod{},
		},
	}
}

// Put adds or replaces rules, nodes, namespaces and pods, and ignores other kinds. The fleet keeps the
// objects: the caller must not change them afterwards.
func (f *Fleet) Put(objects ...client.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, object := range objects {
		switch o := object.(type) {
		case *v1alpha1.NodeReadinessRule:
			before, known := f.rules[o.Name]
			f.rules[o.Name] = o
			f.reread(!known || !noderule.SameRule(before, o) || !sameLimits(&before.Status, &o.Status))
		case *corev1.Node:
			f.putNode(o)
		case *podv1alpha1.PodReadinessRule:
			f.putPodRule(o)
		case *corev1.Namespace:
			f.putNamespace(o)
		case *corev1.Pod:
			f.lookAtGates(podKey(o), o)
			f.countWaiting(podKey(o), o.Spec.NodeName == "" && o.Status.Phase != corev1.PodSucceeded && o.Status.Phase != corev1.PodFailed)
		}
	}
}

// Drop removes objects.
func (f *Fleet) Drop(objects ...client.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, object := range objects {
		switch o := object.(type) {
		case *v1alpha1.NodeReadinessRule:
			delete(f.rules, o.Name)
			f.reread(true)
		case *corev1.Node:
			f.dropNode(o.Name)
		case *podv1alpha1.PodReadinessRule:
			delete(f.gates.rules, o.Name)
			f.rereadGates()
		case *corev1.Namespace:
			delete(f.gates.namespaces, o.Name)
			f.lookAgain(o.Name)
		case *corev1.Pod:
			f.forgetGates(podKey(o))
			f.countWaiting(podKey(o), false)
		}
	}
}

// reread compiles the rules again and, with news, evaluates every node. Most changes of rules are of
// their status, which changes no line of a node except which nodes are limited.
func (f *Fleet) reread(news bool) {
	if f.filling {
		return
	}
	f.book = view.NewBook(slices.Collect(maps.Values(f.rules)))
	f.tell(func(c *changes) { c.rules = true })
	if !news {
		return
	}
	f.tally = view.Tally{}
	for name, obj := range f.objects {
		row := f.book.Node(obj, f.now())
		f.tally.Add(row)
		f.changed(name, row)
	}
}

// filled ends a time in which rules and nodes came in any number and nobody looked.
func (f *Fleet) filled() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filling = false
	f.reread(true)
	f.rereadGates()
}

func (f *Fleet) putNode(obj *corev1.Node) {
	if before, known := f.nodes[obj.Name]; known {
		f.tally.Remove(before)
	}
	f.objects[obj.Name] = obj
	if f.filling {
		return
	}
	row := f.book.Node(obj, f.now())
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

func (f *Fleet) dropNode(name string) {
	if before, known := f.nodes[name]; known {
		f.tally.Remove(before)
	}
	delete(f.objects, name)
	delete(f.nodes, name)
	f.tell(func(c *changes) {
		c.nodes[name] = struct{}{}
		c.rules = true
	})
}

// countWaiting notes whether a pod waits for a node.
func (f *Fleet) countWaiting(key string, waits bool) {
	if _, before := f.waiting[key]; f.waiting == nil || before == waits {
		return
	}
	if waits {
		f.waiting[key] = struct{}{}
	} else {
		delete(f.waiting, key)
	}
	f.tell(func(c *changes) { c.waiting = true })
}

// Snapshot is the fleet as it is now.
func (f *Fleet) Snapshot() Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.snapshot()
}

func (f *Fleet) snapshot() Snapshot {
	snapshot := Snapshot{
		Rules:  f.book.Rules(f.tally),
		Nodes:  slices.SortedFunc(maps.Values(f.nodes), func(a, b view.Node) int { return strings.Compare(a.Name, b.Name) }),
		Unseen: slices.Clone(f.unseen),

		Connection: f.connection,
	}
	if f.waiting != nil {
		snapshot.Waiting = new(len(f.waiting))
	}
	if f.gates != nil {
		snapshot.Gated = slices.SortedFunc(maps.Values(f.gates.lines), view.ComparePods)
		snapshot.PodRules = len(f.gates.rules)
	}
	return snapshot
}

// Explanation is the explanation of a node as the fleet knows it, without events and writers.
func (f *Fleet) Explanation(_ context.Context, name string) (view.Explanation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	obj, known := f.objects[name]
	if !known {
		return view.Explanation{}, fmt.Errorf("there is no node %q: %w", name, apierrors.NewNotFound(corev1.Resource("nodes"), name))
	}
	return f.book.Explanation(obj, nil, f.unseen, f.now()), nil
}

// sameLimits says whether two statuses of a rule name the same nodes as limited, and as many more.
func sameLimits(a, b *v1alpha1.NodeReadinessRuleStatus) bool {
	return slices.Equal(a.LimitedNodes, b.LimitedNodes) && unlisted(a) == unlisted(b)
}

// unlisted says whether more nodes are limited than the status lists.
func unlisted(s *v1alpha1.NodeReadinessRuleStatus) bool {
	return s.Summary != nil && int(s.Summary.Limited) > len(s.LimitedNodes)
}

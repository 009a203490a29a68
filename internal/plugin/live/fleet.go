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

// Fleet holds the rows of all rules, nodes and waiting pods, kept up to date. A change of one node updates one row,
// independent of the number of nodes.
type Fleet struct {
	now     func() time.Time
	mu      sync.Mutex
	filling bool // initial list: rows are computed when all objects are there
	rules   map[string]*v1alpha1.NodeReadinessRule
	objects map[string]*corev1.Node
	book    *view.Book
	nodes   map[string]view.Node
	tally   view.Tally
	waiting map[string]struct{} // pods that are bound to no node, by namespace and name; nil if pods may not be read
	gates   *gates              // nil if PodReadinessRules may not be read
	unseen  []string

	connection Connection
	silent     map[string]struct{} // paths that cannot be listed or watched

	followers map[*Follower]struct{}
}

// Snapshot is a fleet at one moment.
type Snapshot struct {
	Rules []view.Rule
	Nodes []view.Node // by name
	// Waiting is the number of pods that are bound to no node; nil if pods may not be read.
	Waiting *int
	// Gated are the pods that wait for a gate of a rule, longest first. PodRules is the number of PodReadinessRules.
	// They are nil and 0 if they may not be read.
	Gated    []view.Pod
	PodRules int
	Unseen   []string
	// Connection is the state of the connection to the cluster.
	Connection Connection
}

// NewFleet returns an empty fleet that follows no cluster. Callers update it with Put and Drop.
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
			f.evaluateGates(podKey(o), o)
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
			f.reevaluate(o.Name)
		case *corev1.Pod:
			f.forgetGates(podKey(o))
			f.countWaiting(podKey(o), false)
		}
	}
}

// reread compiles the rules again and, if changed, evaluates every node. Most updates of rules change only their status.
// Of the status, only the limited nodes affect the rows of nodes.
func (f *Fleet) reread(changed bool) {
	if f.filling {
		return
	}
	f.book = view.NewBook(slices.Collect(maps.Values(f.rules)))
	f.notify(func(c *changes) { c.rules = true })
	if !changed {
		return
	}
	f.tally = view.Tally{}
	for name, obj := range f.objects {
		row := f.book.Node(obj, f.now())
		f.tally.Add(row)
		f.changed(name, row)
	}
}

// filled ends the initial list and computes all rows.
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

// changed stores the row and notifies followers, if the row differs: most updates of nodes are heartbeats.
func (f *Fleet) changed(name string, row view.Node) {
	if before, known := f.nodes[name]; known && reflect.DeepEqual(before, row) {
		return
	}
	f.nodes[name] = row
	f.notify(func(c *changes) {
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
	f.notify(func(c *changes) {
		c.nodes[name] = struct{}{}
		c.rules = true
	})
}

// countWaiting records whether a pod waits for a node.
func (f *Fleet) countWaiting(key string, waits bool) {
	if _, before := f.waiting[key]; f.waiting == nil || before == waits {
		return
	}
	if waits {
		f.waiting[key] = struct{}{}
	} else {
		delete(f.waiting, key)
	}
	f.notify(func(c *changes) { c.waiting = true })
}

// Snapshot returns the current fleet.
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

// Explanation returns the explanation of a node from the fleet's objects, without events and writers.
func (f *Fleet) Explanation(_ context.Context, name string) (view.Explanation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	obj, known := f.objects[name]
	if !known {
		return view.Explanation{}, fmt.Errorf("there is no node %q: %w", name, apierrors.NewNotFound(corev1.Resource("nodes"), name))
	}
	return f.book.Explanation(obj, nil, f.unseen, f.now()), nil
}

// sameLimits reports whether two statuses of a rule list the same limited nodes, and agree on unlisted ones.
func sameLimits(a, b *v1alpha1.NodeReadinessRuleStatus) bool {
	return slices.Equal(a.LimitedNodes, b.LimitedNodes) && unlisted(a) == unlisted(b)
}

// unlisted reports whether more nodes are limited than the status lists.
func unlisted(s *v1alpha1.NodeReadinessRuleStatus) bool {
	return s.Summary != nil && int(s.Summary.Limited) > len(s.LimitedNodes)
}

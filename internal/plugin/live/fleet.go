package live

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
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
	pods    map[string]string // node that a pod is bound to, by namespace and name
	book    *view.Book
	nodes   map[string]view.Node
	tally   view.Tally
	podsOn  map[string]int
	waiting int
	gates   *gates // nil if nothing is known of the gates of pods
	unseen  []string

	connection Connection
	silent     map[string]struct{} // kinds of objects of which nothing is heard

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
		gates: newGates(),
	}
}

func (f *Fleet) putRule(rule *v1alpha1.NodeReadinessRule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, known := f.rules[rule.Name]
	f.rules[rule.Name] = rule
	f.reread(!known || !noderule.SameRule(before, rule) || !sameLimits(&before.Status, &rule.Status))
}

func (f *Fleet) dropRule(rule *v1alpha1.NodeReadinessRule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.rules, rule.Name)
	f.reread(true)
}

// reread reads the rules again and, if they say something else now, looks at every node with
// their eyes. Most changes of rules are of their status, which says nothing new of nodes but which
// are limited.
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
	f.mu.Lock()
	defer f.mu.Unlock()
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

// Snapshot is the fleet as it is now.
func (f *Fleet) Snapshot() Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.snapshot()
}

func (f *Fleet) snapshot() Snapshot {
	snapshot := Snapshot{
		Rules:   f.book.Rules(f.tally),
		Nodes:   slices.SortedFunc(maps.Values(f.nodes), func(a, b view.Node) int { return strings.Compare(a.Name, b.Name) }),
		Pods:    maps.Clone(f.podsOn),
		Waiting: f.waiting,
		Unseen:  slices.Clone(f.unseen),

		Connection: f.connection,
	}
	if f.gates != nil {
		snapshot.Gated = slices.SortedFunc(maps.Values(f.gates.lines), view.ComparePods)
		snapshot.PodRules = len(f.gates.rules)
	}
	return snapshot
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

// sameLimits says whether two statuses of a rule name the same nodes as limited, and as many more.
func sameLimits(a, b *v1alpha1.NodeReadinessRuleStatus) bool {
	return slices.Equal(a.LimitedNodes, b.LimitedNodes) && unlisted(a) == unlisted(b)
}

// unlisted says whether more nodes are limited than the status lists.
func unlisted(s *v1alpha1.NodeReadinessRuleStatus) bool {
	return s.Summary != nil && int(s.Summary.Limited) > len(s.LimitedNodes)
}

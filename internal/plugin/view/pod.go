package view

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/latchkey"
	"github.com/readygate/readygate/internal/core/podrule"
)

// PodBook holds all PodReadinessRules, compiled.
type PodBook struct {
	rules   []*podrule.Rule
	objects map[string]*v1alpha1.PodReadinessRule // by name
}

// NewPodBook compiles the rules.
func NewPodBook(rules []*v1alpha1.PodReadinessRule) *PodBook {
	b := &PodBook{rules: podrule.NewRules(rules), objects: make(map[string]*v1alpha1.PodReadinessRule, len(rules))}
	for _, rule := range rules {
		b.objects[rule.Name] = rule
	}
	return b
}

// Place is what is known about the namespace, the node and the agent of a pod.
type Place struct {
	// Namespace are the labels of its namespace; nil if unknown.
	Namespace map[string]string
	// Node is its node; nil if the pod is not scheduled, or if the node was not read.
	Node *corev1.Node
	// Agent is the agent of its node.
	Agent Agent
}

// Agent is the podgate agent of a node, according to its Lease.
type Agent struct {
	// Known means that the Lease was read, or is known to be absent.
	Known bool `json:"known"`
	// Alive means that the agent renewed its Lease in time.
	Alive bool `json:"alive"`
	// Renewed is when the agent last renewed its Lease; zero if it has none.
	Renewed time.Time `json:"renewed,omitzero"`
	Version string    `json:"version,omitempty"`
}

// gone reports whether the node is known to have no live agent.
func (a Agent) gone() bool { return a.Known && !a.Alive }

// PodState is the state of a pod over all rules.
type PodState string

const (
	// PodWaiting means that a gate of a rule is closed, or the latch that it opens.
	PodWaiting PodState = "Waiting"
	// PodUngated means that a rule selects the pod, but the pod does not have its gate.
	PodUngated PodState = "Ungated"
	// PodOpen means that all gates of rules are open.
	PodOpen PodState = "Open"
	// PodNotSelected means that no rule selects the pod.
	PodNotSelected PodState = "NotSelected"
	// PodOver means that the pod has ended or is being deleted.
	PodOver PodState = "Over"
)

// Pod is the row of one pod.
type Pod struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	Created   time.Time `json:"created"`
	// Node is empty while the pod is not scheduled.
	Node string `json:"node,omitempty"`

	State PodState `json:"state"`
	// Since is since when the pod waits; zero if it does not wait, or has no sandbox yet.
	Since time.Time `json:"since,omitzero"`
	// Late means that the pod has waited for longer than the deadline of a rule.
	Late bool `json:"late,omitempty"`

	// Gates are the gates of rules that the pod has, in the order of its spec.
	Gates []Gate `json:"gates,omitempty"`
	// Ungated are the rules that select the pod and whose gate it does not have.
	Ungated []Ungated `json:"ungated,omitempty"`

	Agent Agent `json:"agent,omitzero"`
}

// Ungated is a rule whose gate a pod does not have, with the reason.
type Ungated struct {
	Rule string `json:"rule"`
	Gate string `json:"gate"`
	Why  string `json:"why"`
}

// Key returns namespace and name, e.g. shop/web.
func (p Pod) Key() string { return p.Namespace + "/" + p.Name }

// Pod returns the row of a pod at a time.
func (b *PodBook) Pod(obj *corev1.Pod, place Place, now time.Time) Pod {
	row := Pod{
		Namespace: obj.Namespace, Name: obj.Name, UID: obj.UID, Created: obj.CreationTimestamp.Time,
		Node: obj.Spec.NodeName, State: PodNotSelected, Agent: place.Agent,
	}
	if podrule.Over(obj) {
		row.State = PodOver
		return row
	}
	subject := subjectOf(obj, place)
	decision := podrule.Decide(b.rules, subject, unknownProbe, now)
	for i := range decision.Verdicts {
		row.add(gateOf(&decision, &decision.Verdicts[i], obj, place, now), abandoned(&decision.Verdicts[i], place))
	}
	for _, rule := range b.rules {
		if why, without := ungated(rule, subject, &decision); without {
			row.Ungated = append(row.Ungated, Ungated{Rule: rule.Name, Gate: rule.Gate, Why: why})
		}
	}
	if len(row.Ungated) > 0 && row.State != PodWaiting {
		row.State = PodUngated
	}
	return row
}

// add merges one more gate into the row. A gate that is open and abandoned does not count.
func (p *Pod) add(g Gate, abandoned bool) {
	p.Gates = append(p.Gates, g)
	if !g.Waits() {
		if p.State == PodNotSelected && !abandoned {
			p.State = PodOpen
		}
		return
	}
	if p.State != PodWaiting || compareTimes(g.Since, p.Since) < 0 {
		p.Since = g.Since
	}
	p.State, p.Late = PodWaiting, p.Late || g.Late
}

// unknownProbe has no answers: only an agent on the node can probe.
func unknownProbe(podrule.Probe) (podrule.Answer, bool) { return podrule.Answer{}, false }

func subjectOf(obj *corev1.Pod, place Place) *podrule.Subject {
	s := &podrule.Subject{Pod: obj, Namespace: place.Namespace}
	if place.Node != nil {
		s.Node.Conditions, s.Node.BootID = place.Node.Status.Conditions, place.Node.Status.NodeInfo.BootID
	}
	if s.Node.BootID == "" { // unknown: assume that the node has not rebooted
		key, _ := latchkey.Parse(obj.Annotations[v1alpha1.LatchAnnotation])
		s.Node.BootID = key.Sandbox.Boot
	}
	return s
}

// ungated returns why a pod that the rule selects does not have its gate, if this is the case.
func ungated(rule *podrule.Rule, s *podrule.Subject, d *podrule.Decision) (why string, without bool) {
	var tally podrule.Tally
	tally.Count(rule, s, d)
	if len(tally.Without) == 0 {
		return "", false
	}
	return tally.Without[0].Why, true
}

// Pods are the rows of the pods that rules select or gate.
type Pods struct {
	Pods  []Pod    `json:"pods"`
	Count PodCount `json:"count"`
	// Unseen is what could not be read, with the reason.
	Unseen []string `json:"unseen,omitempty"`
}

// PodCount counts pods by their state.
type PodCount struct {
	Waiting int `json:"waiting"`
	// Late counts the waiting pods that have waited for longer than the deadline of a rule.
	Late    int `json:"late"`
	Open    int `json:"open"`
	Ungated int `json:"ungated"`
}

// All returns the number of counted pods.
func (c PodCount) All() int { return c.Waiting + c.Open + c.Ungated }

func (c *PodCount) add(p *Pod) {
	switch p.State {
	case PodWaiting:
		c.Waiting++
		if p.Late {
			c.Late++
		}
	case PodOpen:
		c.Open++
	case PodUngated:
		c.Ungated++
	}
}

// Pods returns the rows of the pods that rules select or gate, in the order of ComparePods.
func (b *PodBook) Pods(objs []*corev1.Pod, placeOf func(*corev1.Pod) Place, now time.Time) Pods {
	all := Pods{Pods: []Pod{}}
	for _, obj := range objs {
		row := b.Pod(obj, placeOf(obj), now)
		if row.State == PodNotSelected || row.State == PodOver {
			continue
		}
		all.Count.add(&row)
		all.Pods = append(all.Pods, row)
	}
	slices.SortFunc(all.Pods, ComparePods)
	return all
}

// ComparePods orders rows: waiting pods first, longest first, then pods without a gate, then by name.
func ComparePods(a, b Pod) int {
	rank := map[PodState]int{PodWaiting: 0, PodUngated: 1, PodOpen: 2, PodNotSelected: 3, PodOver: 4}
	return cmp.Or(
		cmp.Compare(rank[a.State], rank[b.State]),
		compareTimes(a.Since, b.Since),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	)
}

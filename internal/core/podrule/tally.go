package podrule

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/text"
)

// Tally counts the pods that a rule selects. Agents report it as JSON.
type Tally struct {
	Gated   int `json:"gated,omitempty"`
	Open    int `json:"open,omitempty"`
	Waiting int `json:"waiting,omitempty"`
	Late    int `json:"late,omitempty"`
	Ungated int `json:"ungated,omitempty"`
	// Foreign counts the waiting pods whose condition is True without a decision of Readygate.
	Foreign int `json:"foreign,omitempty"`
	// LatchClosed counts the waiting pods whose gate is open and whose latch is still closed.
	LatchClosed int `json:"latchClosed,omitempty"`

	// Waits are the waiting pods, the longest wait first, and Without the pods without the gate; see Cut.
	Waits   []Listed `json:"waits,omitempty"`
	Without []Listed `json:"without,omitempty"`
}

// Listed is a pod in a tally.
type Listed struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Node      string    `json:"-"` // set by AddFrom
	Since     time.Time `json:"since,omitzero"`
	Why       string    `json:"why,omitempty"`
}

// Count adds a pod, for which Decide returned the decision, to the tally of a rule.
func (t *Tally) Count(rule *Rule, s *Subject, d *Decision) {
	if Over(s.Pod) || !rule.Active() || !rule.Selects(s.Pod, s.Namespace) {
		return
	}
	if !slices.Contains(Ours(s.Pod), rule.Gate) {
		t.Ungated++
		t.Without = append(t.Without, Listed{Namespace: s.Pod.Namespace, Name: s.Pod.Name, Why: ungatedWords(rule, s.Pod)})
		return
	}
	t.Gated++
	i := slices.IndexFunc(d.Verdicts, func(v Verdict) bool { return v.Gate == rule.Gate })
	if i < 0 {
		return
	}
	v := &d.Verdicts[i]
	if d.LatchHolds(v) {
		t.Waiting++
		t.LatchClosed++
		t.Waits = append(t.Waits, Listed{Namespace: s.Pod.Namespace, Name: s.Pod.Name, Since: d.LatchClosed, Why: LatchClosedWords})
		return
	}
	if v.Open {
		t.Open++
		return
	}
	t.Waiting++
	if v.Foreign {
		t.Foreign++
	}
	if slices.ContainsFunc(v.Late, func(late *Rule) bool { return late.UID == rule.UID }) {
		t.Late++
	}
	t.Waits = append(t.Waits, Listed{Namespace: s.Pod.Namespace, Name: s.Pod.Name, Since: v.Waits, Why: text.Cut(v.Message, listedWords)})
}

// listedWords is the maximum length of the explanation of a listed pod, in bytes.
const listedWords = 256

// AddFrom adds the tally of the pods of a node.
func (t *Tally) AddFrom(node string, other *Tally) {
	onNode := func(all, pods []Listed) []Listed {
		for _, pod := range pods {
			pod.Node = node
			all = append(all, pod)
		}
		return all
	}
	t.Gated += other.Gated
	t.Open += other.Open
	t.Waiting += other.Waiting
	t.Late += other.Late
	t.LatchClosed += other.LatchClosed
	t.Ungated += other.Ungated
	t.Foreign += other.Foreign
	t.Waits, t.Without = onNode(t.Waits, other.Waits), onNode(t.Without, other.Without)
}

// Cut sorts the lists and truncates each to the limit.
func (t *Tally) Cut(limit int) {
	slices.SortFunc(t.Waits, func(a, b Listed) int {
		if a.Since.IsZero() != b.Since.IsZero() { // a pod without a sandbox does not wait for a component yet
			if a.Since.IsZero() {
				return 1
			}
			return -1
		}
		return cmp.Or(a.Since.Compare(b.Since), byName(a, b))
	})
	slices.SortFunc(t.Without, byName)
	t.Waits, t.Without = t.Waits[:min(limit, len(t.Waits))], t.Without[:min(limit, len(t.Without))]
}

func byName(a, b Listed) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// ungatedWords explains why a pod that a rule selects does not have its gate.
func ungatedWords(rule *Rule, pod *corev1.Pod) string {
	if pod.CreationTimestamp.Time.Before(rule.Created) {
		return "the pod is older than the rule: recreate it to gate it"
	}
	return fmt.Sprintf("the pod was created without the gate: the API server had not observed rule %s yet, the admission policy was not in effect, or the labels of the pod or its namespace changed later: recreate it to gate it", rule.Name)
}

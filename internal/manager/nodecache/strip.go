package nodecache

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/internal/core/noderule"
)

// Stripper cuts nodes down to what decisions need, before they enter the cache: no images,
// managed fields, addresses, foreign annotations or words of conditions. What is left of many
// nodes is mostly the same words, and is kept once.
type Stripper struct{ words dictionary }

// Strip is a transform for the cache.
func (s *Stripper) Strip(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	s.words.Lock()
	defer s.words.Unlock()
	// A new object, so that nothing of the large one is kept alive.
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:              s.words.canonical(node.Name), // often it is a label, too
			UID:               node.UID,
			ResourceVersion:   node.ResourceVersion,
			CreationTimestamp: node.CreationTimestamp,
			DeletionTimestamp: node.DeletionTimestamp,
			Labels:            s.labels(node.Labels),
			Annotations:       s.annotations(node.Annotations),
		},
		Spec:   corev1.NodeSpec{Taints: s.taints(node.Spec.Taints)},
		Status: corev1.NodeStatus{Conditions: s.conditions(node.Status.Conditions), NodeInfo: corev1.NodeSystemInfo{BootID: node.Status.NodeInfo.BootID}},
	}, nil
}

func (s *Stripper) labels(labels map[string]string) map[string]string {
	if labels == nil {
		return nil
	}
	kept := make(map[string]string, len(labels))
	for key, value := range labels {
		kept[s.words.canonical(key)] = s.words.canonical(value)
	}
	return kept
}

// annotations keeps ours. A node that has none at all is told from one that has others'.
func (s *Stripper) annotations(annotations map[string]string) map[string]string {
	if annotations == nil {
		return nil
	}
	kept := map[string]string{}
	for key, value := range annotations {
		if noderule.IsOurs(key) {
			kept[s.words.canonical(key)] = s.words.canonical(value)
		}
	}
	return kept
}

// taints keeps all of every taint: the list is written as a whole.
func (s *Stripper) taints(taints []corev1.Taint) []corev1.Taint {
	kept := slices.Clone(taints)
	for i, t := range kept {
		kept[i].Key, kept[i].Value, kept[i].Effect = s.words.canonical(t.Key), s.words.canonical(t.Value), corev1.TaintEffect(s.words.canonical(string(t.Effect)))
	}
	return kept
}

func (s *Stripper) conditions(conditions []corev1.NodeCondition) []corev1.NodeCondition {
	kept := make([]corev1.NodeCondition, len(conditions))
	for i, c := range conditions {
		kept[i] = corev1.NodeCondition{
			Type:               corev1.NodeConditionType(s.words.canonical(string(c.Type))),
			Status:             corev1.ConditionStatus(s.words.canonical(string(c.Status))),
			LastHeartbeatTime:  c.LastHeartbeatTime,
			LastTransitionTime: c.LastTransitionTime,
		}
	}
	return kept
}

// dictionaryPage is how many words a dictionary learns before it forgets those that nobody
// has used for as long.
const dictionaryPage = 1024

// dictionary gives equal words one place in memory. It is bounded: names of nodes come and go
// for ever. The zero value is ready for use.
type dictionary struct {
	sync.Mutex
	page, before map[string]string
}

// canonical is the word, as it was first seen.
func (d *dictionary) canonical(word string) string {
	if known, ok := d.page[word]; ok {
		return known
	}
	if known, ok := d.before[word]; ok {
		word = known
	}
	if d.page == nil || len(d.page) >= dictionaryPage {
		d.page, d.before = make(map[string]string), d.page
	}
	d.page[word] = word
	return word
}

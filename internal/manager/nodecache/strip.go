package nodecache

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/internal/core/noderule"
)

// Stripper reduces nodes to what decisions need, before they enter the cache: without images, managed fields, addresses,
// annotations of other clients, and reasons and messages of conditions. Strings that many nodes share are stored once.
type Stripper struct{ words dictionary }

// Strip is a transform for the cache.
func (s *Stripper) Strip(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	s.words.Lock()
	defer s.words.Unlock()
	// A new object: it must not reference the large one.
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:              s.words.canonical(node.Name), // often also the value of a label
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

// annotations keeps Readygate's annotations. The result is nil only if the node has no annotations at all.
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

// taints keeps all fields: a write replaces the whole list.
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

// dictionaryPage is the number of strings per page of a dictionary. A dictionary has two pages: strings that were not
// used since the last page began are removed.
const dictionaryPage = 1024

// dictionary stores equal strings once. It is bounded, because names of nodes change indefinitely. The zero value is
// ready for use.
type dictionary struct {
	sync.Mutex
	page, before map[string]string
}

// canonical returns the stored copy of the string.
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

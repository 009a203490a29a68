package admission_test

import (
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
)

// BenchmarkAdmitPod measures what the policy readygate-gate-new-pods adds to the creation of a pod inside the API
// server: a pod that gets the gate of one rule, with and without the latch, one that no rule selects, and one that
// the match condition skips.
func BenchmarkAdmitPod(b *testing.B) {
	for _, count := range []int{0, 1, 10, 100} {
		var plain, held []*v1alpha1.PodReadinessRule
		for i := range count {
			team := func(r *v1alpha1.PodReadinessRule) {
				r.Spec.PodSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{"team": v1alpha1.LabelValue(strconv.Itoa(i))}}
			}
			plain = append(plain, podRule(fmt.Sprint("rule-", i), team))
			held = append(held, podRule(fmt.Sprint("rule-", i), team, holdsStart))
		}
		last := strconv.Itoa(count - 1)
		for name, c := range map[string]struct {
			rules []*v1alpha1.PodReadinessRule
			pod   *corev1.Pod
		}{
			"gated":        {plain, pod(podLabel("team", last))},
			"held":         {held, pod(podLabel("team", last))},
			"not-selected": {plain, pod()},
			"host-network": {plain, pod(func(p *corev1.Pod) { p.Spec.HostNetwork = true })},
		} {
			policy := newGater(b, c.rules...).within(c.pod.Namespace, nil)
			b.Run(fmt.Sprintf("rules=%d/%s", count, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := policy.mutate(createdPod(c.pod)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

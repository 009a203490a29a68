package integration_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// The largest rule that every limit allows works as any other.
func TestInputOfTheLargestRuleIsAccepted(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	remove(t, c, id)
	key := strings.Repeat("a", 253) + "/" + strings.Repeat("b", 61)
	values := "[" + times(256, strings.Repeat("v", 60)+"%03d") + "]"
	changes := expression(times(64, "{key: "+key+"%02d, operator: NotIn, values: "+values+"}"))
	changes["spec.conditions"] = "[" + times(32, "{type: "+strings.Repeat("c", 314)+"%02d, requiredStatus: 'True'}") + "]"
	changes["metadata.annotations"] = "{a: " + strings.Repeat("a", 255<<10) + "}"
	body := edited(t, id, changes)
	if err := post(t, c, body, asJSON, metav1.FieldValidationStrict); err != nil {
		t.Fatalf("was refused: %v", err)
	}
	wantWorking(t, c, id, testenv.Pool(id))
}

// The status names up to 100 nodes with every condition of each: with the longest types it
// must still fit into what etcd stores.
func TestInputOfTheLongestConditionsLeavesRoomForStatus(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	remove(t, c, id)
	var list strings.Builder
	for i := range 32 {
		fmt.Fprintf(&list, "- {type: '%s%02d', requiredStatus: 'True'}\n", strings.Repeat("🚀", 314), i)
	}
	if err := post(t, c, edited(t, id, edits{"spec.conditions": list.String()}), asJSON, metav1.FieldValidationStrict); err != nil {
		t.Fatal(err)
	}
	const nodes = v1alpha1.MaxListedNodes
	for i := range nodes {
		c.Create(t, testenv.Node(fmt.Sprintf("%s-%03d", id, i), testenv.Pool(id)))
	}
	c.EventuallyRule(t, id, "enforced on all nodes", func(r *v1alpha1.NodeReadinessRule) bool {
		return testenv.Enforced(r) && r.Status.Summary.Held == nodes
	})
}

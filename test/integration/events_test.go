package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// wantEvents waits for exactly these events about the object, each once.
func wantEvents(t *testing.T, c *testenv.Cluster, obj client.Object, reasons ...string) {
	t.Helper()
	testenv.Eventually(t, fmt.Sprintf("events %v about %s", reasons, obj.GetName()), func(context.Context) error {
		var got []string
		for _, event := range c.Events(t, obj) {
			if event.Series != nil {
				return fmt.Errorf("%s was repeated %d times", event.Reason, event.Series.Count)
			}
			got = append(got, event.Reason)
		}
		if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(reasons))) {
			return fmt.Errorf("got %v", got)
		}
		return nil
	})
}

// eventOf waits for an event of this reason.
func eventOf(t *testing.T, c *testenv.Cluster, obj client.Object, reason string) eventsv1.Event {
	t.Helper()
	var found eventsv1.Event
	testenv.Eventually(t, reason+" about "+obj.GetName(), func(context.Context) error {
		for _, event := range c.Events(t, obj) {
			if event.Reason == reason {
				found = event
				return nil
			}
		}
		return errors.New("not there")
	})
	return found
}

func TestEventsHaveTheReasonsOfTheSharedAPI(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	rule := testenv.Rule(id)
	c.Create(t, rule)
	node := testenv.Node(id, testenv.Pool(id), testenv.WithTaint(rule.Spec.Taint.Key))
	c.CreateNode(t, node, "")
	c.EventuallyNode(t, id, "adopted", held(rule))
	c.SetCondition(t, id, testenv.Condition, corev1.ConditionTrue)
	c.EventuallyNode(t, id, "released", free(rule))
	c.SetCondition(t, id, testenv.Condition, corev1.ConditionFalse)
	c.EventuallyNode(t, id, "held", held(rule))

	wantEvents(t, c, node, v1alpha1.EventTaintAdopted, v1alpha1.EventTaintRemoved, v1alpha1.EventTaintAdded)
	actions := map[string]string{"TaintAdopted": "AdoptTaint", "TaintRemoved": "RemoveTaint", "TaintAdded": "AddTaint"}
	for _, event := range c.Events(t, node) {
		switch {
		case event.Action != actions[event.Reason]:
			t.Errorf("%s has action %q", event.Reason, event.Action)
		case event.Type != corev1.EventTypeNormal, event.Namespace != corev1.NamespaceDefault:
			t.Errorf("%s is %s in %s", event.Reason, event.Type, event.Namespace)
		case event.ReportingController != "node-readiness-controller":
			t.Errorf("%s is reported by %q", event.Reason, event.ReportingController)
		case event.Regarding.Kind != "Node" || event.Regarding.Name != id || event.Related == nil || event.Related.Name != id:
			t.Errorf("%s is about %v, related %v", event.Reason, event.Regarding, event.Related)
		case !strings.Contains(event.Note, rule.Spec.Taint.Key) || !strings.Contains(event.Note, rule.Name):
			t.Errorf("%s does not name taint and rule: %s", event.Reason, event.Note)
		}
	}
}

func TestOneChangeOfANodeByManyRulesHasOneEvent(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	node := testenv.Node(id, testenv.Pool(id))
	c.CreateNode(t, node, corev1.ConditionTrue) // before the rules: it is not created with the taint
	rules := []*v1alpha1.NodeReadinessRule{testenv.Rule(id + "-a"), testenv.Rule(id + "-b")}
	for _, rule := range rules {
		rule.Spec.NodeSelector = testenv.Rule(id).Spec.NodeSelector
		c.Create(t, rule)
	}
	for _, rule := range rules {
		c.EventuallyRule(t, rule.Name, "enforced", testenv.Enforced)
	}
	c.SetCondition(t, id, testenv.Condition, corev1.ConditionFalse)
	for _, rule := range rules {
		c.EventuallyNode(t, id, "held", held(rule))
	}
	wantEvents(t, c, node, v1alpha1.EventTaintAdded)
	note := eventOf(t, c, node, v1alpha1.EventTaintAdded).Note
	for _, rule := range rules {
		if want := fmt.Sprintf("Taint '%s:NoSchedule' added by rule '%s'", rule.Spec.Taint.Key, rule.Name); !strings.Contains(note, want) {
			t.Errorf("the event does not contain %q: %s", want, note)
		}
	}
}

package dashboard_test

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/plugin/dashboard"
	"github.com/readygate/readygate/internal/plugin/live"
)

// known is what a tile shows in addition to held and released.
type known struct {
	state                           string
	missing, stuck, limited, causes []string
	until                           int64
}

// noted gives the node an annotation of the rule network.
func noted(node *corev1.Node, prefix, value string) *corev1.Node {
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[prefix+"uid-network"] = value
	return node
}

// holdSince returns a held node whose record contains the time.
func holdSince(since, more string) *corev1.Node {
	return noted(held("a"), v1alpha1.HoldPrefix, `{"rule":"network","taint":"readiness.k8s.io/network:NoSchedule","origin":"added","since":"`+since+`"`+more+`}`)
}

// saying gives the node the condition.
func saying(node *corev1.Node, status corev1.ConditionStatus, beat time.Time) *corev1.Node {
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: condition, Status: status, LastHeartbeatTime: metav1.NewTime(beat)})
	return node
}

func TestTileShowsTheActiveSafetyField(t *testing.T) {
	const long = "2020-01-01T00:00:00Z"
	met := time.Now().Add(-time.Minute).Truncate(time.Second)
	running := released("a")
	running.Status.Conditions[0].Status = corev1.ConditionFalse
	storage := rule("storage")
	storage.UID, storage.Spec.Taint.Key, storage.Spec.DependsOn = "uid-storage", "readiness.k8s.io/storage", []string{"network"}
	silent, unreported := condition+" is Unknown (no heartbeat for more than 1m0s), must be True", condition+" is not reported, must be True"
	cases := map[string]struct {
		change func(*v1alpha1.NodeReadinessRule)
		more   []*v1alpha1.NodeReadinessRule
		node   *corev1.Node
		want   known
	}{
		"held for less than the deadline": {
			change: func(r *v1alpha1.NodeReadinessRule) { r.Spec.ProgressDeadlineSeconds = ptr.To[int32](3600) },
			node:   holdSince(met.UTC().Format(time.RFC3339), ""),
			want:   known{state: "Held", missing: []string{unreported}},
		},
		"stuck": {
			change: func(r *v1alpha1.NodeReadinessRule) { r.Spec.ProgressDeadlineSeconds = ptr.To[int32](60) },
			node:   holdSince(long, ""),
			want:   known{state: "Held", missing: []string{unreported}, stuck: []string{"network"}},
		},
		"released by the deadline": {
			change: func(r *v1alpha1.NodeReadinessRule) {
				r.Spec.ProgressDeadlineSeconds, r.Spec.OnDeadline = ptr.To[int32](60), v1alpha1.DeadlineRelease
			},
			node: noted(unconditional("a"), v1alpha1.MemoryPrefix, `{"rule":"network","expired":"`+long+`"}`),
			want: known{state: "Released", missing: []string{unreported}, causes: []string{"network released it at the deadline"}},
		},
		"limited": {
			change: func(r *v1alpha1.NodeReadinessRule) {
				r.Spec.MaxUnavailable, r.Status.LimitedNodes = ptr.To(intstr.FromInt32(0)), []string{"a"}
			},
			node: running,
			want: known{state: "Released", missing: []string{condition + " is False, must be True"}, limited: []string{"network"}},
		},
		"met, but not for long enough": {
			change: func(r *v1alpha1.NodeReadinessRule) { r.Spec.MinReadySeconds = 3600 },
			node:   saying(holdSince(long, `,"met":"`+met.UTC().Format(time.RFC3339)+`"`), corev1.ConditionTrue, met),
			want:   known{state: "Held", until: met.Add(time.Hour).Unix()},
		},
		"a word that is too old": {
			change: func(r *v1alpha1.NodeReadinessRule) {
				r.Spec.Conditions[0].MaxAge = &metav1.Duration{Duration: time.Minute}
			},
			node: saying(holdSince(long, ""), corev1.ConditionTrue, met.Add(-time.Hour)),
			want: known{state: "Held", missing: []string{silent}},
		},
		"gone, perhaps to reboot": {
			change: func(r *v1alpha1.NodeReadinessRule) {
				r.Spec.EnforcementMode, r.Spec.BootstrapScope = v1alpha1.EnforcementModeBootstrapOnly, v1alpha1.BootstrapScopeBoot
			},
			node: noted(saying(holdSince(long, `,"boot":"b","armed":true,"beats":{"example.com/NetworkReady":"`+met.UTC().Format(time.RFC3339)+` True"}`), corev1.ConditionTrue, met), v1alpha1.CompletedPrefix, `{"boot-id":"b","rule-name":"network"}`),
			want: known{state: "Held", causes: []string{"network holds the node while it is not Ready: it may return from a reboot"}},
		},
		"a rule that waits for another": {
			change: func(*v1alpha1.NodeReadinessRule) {},
			more:   []*v1alpha1.NodeReadinessRule{storage},
			node:   holdSince(long, ""),
			want:   known{state: "Held", missing: []string{unreported}, causes: []string{"storage waits for rule network"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			network := rule("network")
			c.change(network)
			f := live.NewFleet(time.Now)
			f.Put(network)
			for _, r := range c.more {
				f.Put(r)
			}
			f.Put(c.node)
			told := openPage(t, serve(t, dashboard.New(dashboard.Options{Fleet: f}))).next().Nodes[0]
			got := known{told.State, told.Missing, told.Stuck, told.Limited, told.Causes, told.Until}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v\nwant %+v", got, c.want)
			}
		})
	}
}

// unconditional is a node without conditions that no rule holds.
func unconditional(name string) *corev1.Node {
	node := held(name)
	node.Spec.Taints = nil
	return node
}

// Package agents is what the manager, podgate and the plugin share about the agents on nodes: the Lease that an
// agent renews, and the report in it: how many pods each rule selects on the node, and which of them wait. The
// manager reads the report instead of watching pods.
package agents

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/podrule"
)

const (
	// Namespace is where the leases are.
	Namespace = admission.ManagerNamespace

	// Lasts is how long an agent counts as alive after it last renewed its Lease.
	Lasts = 60 * time.Second
	// Renews is the interval at which an agent renews its Lease.
	Renews = 20 * time.Second

	// ReportAnnotation holds the report of a lease.
	ReportAnnotation = "readygate.dev/report"

	// ComponentLabel distinguishes the Leases of agents from other Leases.
	ComponentLabel = "app.kubernetes.io/component"
	// Component is its value.
	Component = "podgate"

	// Listed is the maximum number of pods per list of a report: the reports of all nodes of a large cluster must fit into
	// the manager's memory.
	Listed = 5
)

// Report is what an agent observes on its node.
type Report struct {
	// Version is that of the agent.
	Version string `json:"version,omitempty"`
	// Rules are the rules in the agent's cache, by UID.
	Rules map[types.UID]RuleReport `json:"rules,omitempty"`
}

// RuleReport counts the pods of a node that a rule selects, with at most Listed pods per list.
type RuleReport struct {
	// Generation is the generation of the rule that the agent used.
	Generation int64 `json:"generation,omitempty"`
	podrule.Tally
}

// Name is the name of the lease of a node's agent.
func Name(node string) string { return admission.LeasePrefix + node }

// NodeOf returns the node whose agent renews the Lease; false if the Lease is not an agent's.
func NodeOf(lease *coordinationv1.Lease) (string, bool) {
	if lease.Labels[ComponentLabel] != Component || lease.Labels[admission.PartOfLabel] != admission.PartOf {
		return "", false
	}
	return strings.CutPrefix(lease.Name, admission.LeasePrefix)
}

// ReportOf returns the report in a Lease; an empty one if it cannot be decoded. The report of an agent is trusted for its
// node, within bounds, because its contents appear in the status of rules.
func ReportOf(lease *coordinationv1.Lease) Report {
	var report Report
	if json.Unmarshal([]byte(lease.Annotations[ReportAnnotation]), &report) != nil {
		return Report{}
	}
	for uid, rule := range report.Rules {
		for _, count := range []*int{&rule.Gated, &rule.Open, &rule.Waiting, &rule.Late, &rule.Ungated, &rule.Foreign, &rule.LatchClosed} {
			*count = min(max(*count, 0), most)
		}
		rule.Waits, rule.Without = bounded(rule.Waits), bounded(rule.Without)
		report.Rules[uid] = rule
	}
	return report
}

// most is more pods than any node has.
const most = 100_000

func bounded(pods []podrule.Listed) []podrule.Listed {
	pods = pods[:min(len(pods), Listed)]
	return slices.DeleteFunc(pods, func(p podrule.Listed) bool {
		return len(validation.IsDNS1123Subdomain(p.Name)) > 0 || len(validation.IsDNS1123Label(p.Namespace)) > 0
	})
}

// Alive reports whether the agent has renewed its Lease recently, as far as clocks of two machines can be compared. A
// watch of Leases is more precise: see Watcher.
func Alive(lease *coordinationv1.Lease, now time.Time) bool {
	return lease.Spec.RenewTime != nil && now.Sub(lease.Spec.RenewTime.Time) < Lasts
}

// Labels are the labels of every lease of an agent.
func Labels() map[string]string {
	return map[string]string{admission.PartOfLabel: admission.PartOf, ComponentLabel: Component}
}

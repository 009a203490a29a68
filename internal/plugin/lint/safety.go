package lint

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// beats is the number of heartbeats that should fit into maxAge: one may be lost, and one late.
const beats = 3

// defaultHeartbeat is the reporter's default heartbeatPeriod.
const defaultHeartbeat = 5 * time.Minute

// checkEvictions checks rules with the effect NoExecute.
func (r *Report) checkEvictions(at document, rule *noderule.Rule) {
	switch {
	case rule.Bootstrap:
		r.add(Info, at, "spec.taint.effect", "NoExecute evicts: nodes that already run pods lose them if the conditions are not met when the rule is applied",
			"check first: kubectl readiness simulate -f "+at.file)
	case rule.MaxUnavailable == nil:
		r.add(Error, at, "spec.maxUnavailable", "is absent, but NoExecute evicts: with enforcementMode continuous, a reporter that fails on all nodes would evict the pods of all nodes at once",
			"set maxUnavailable, e.g. 1 or 10%, or use the effect NoSchedule, which does not evict pods")
		r.Findings[len(r.Findings)-1].unsafe = true
	default:
		r.add(Info, at, "spec.taint.effect", fmt.Sprintf("NoExecute evicts: up to %s of the nodes in use lose their pods while their conditions are not met", rule.MaxUnavailable),
			"use NoSchedule, which keeps running pods, if only new pods must stay away")
	}
}

// checkAges estimates the cost of the heartbeats that maxAge requires.
func (r *Report) checkAges(at document, rule *noderule.Rule) {
	for i, requirement := range rule.Requirements {
		if requirement.MaxAge == nil {
			continue
		}
		if do := unfit(requirement); do != "" {
			r.add(Warning, at, fmt.Sprintf("spec.conditions[%d].maxAge", i), do, "leave maxAge out for "+requirement.Type)
			continue
		}
		period := requirement.MaxAge.Duration / beats
		r.add(Info, at, fmt.Sprintf("spec.conditions[%d].maxAge", i),
			fmt.Sprintf("needs a heartbeat about every %s: with %d nodes, %.3g writes per second (--nodes sets the number of nodes)",
				period.Round(time.Second), r.nodes, float64(r.nodes)/period.Seconds()), "")
	}
}

// kubeletPeriod is how often a kubelet writes conditions that did not change.
const kubeletPeriod = 5 * time.Minute

// unfit returns why maxAge does not fit a condition that Kubernetes writes; empty if it fits.
func unfit(requirement v1alpha1.ConditionRequirement) string {
	switch {
	case requirement.Type == string(corev1.NodeNetworkUnavailable):
		return "NetworkUnavailable is written once, when the network becomes available: nodes would be held forever after " + requirement.MaxAge.Duration.String()
	case slices.Contains(kubeletTypes, requirement.Type) && requirement.MaxAge.Duration < 2*kubeletPeriod:
		return fmt.Sprintf("the kubelet writes %s every %s if nothing changes (nodeStatusReportFrequency), so healthy nodes would be held repeatedly; Kubernetes sets it to Unknown if the kubelet stops",
			requirement.Type, kubeletPeriod)
	}
	return ""
}

// checkHeartbeats warns about a reporter that writes too rarely for the maxAge of a rule.
func (r *Report) checkHeartbeats(it reporter, rule *v1alpha1.NodeReadinessRule) {
	for _, requirement := range rule.Spec.Conditions {
		if requirement.MaxAge == nil || it.heartbeat == 0 || !slices.Contains(it.types, requirement.Type) {
			continue
		}
		if age := requirement.MaxAge.Duration; 2*it.heartbeat > age {
			r.add(Warning, it.document, "", fmt.Sprintf("writes %s every %s, but rule %q has maxAge %s: one late heartbeat holds the node", requirement.Type, it.heartbeat, rule.Name, age),
				fmt.Sprintf("set heartbeatPeriod (or HEARTBEAT_PERIOD) to %s, or a larger maxAge", (age/beats).Round(time.Second)))
		}
	}
}

// heartbeatIn returns the period from the container's environment; zero if not set.
func heartbeatIn(c corev1.Container) time.Duration {
	for _, env := range c.Env {
		if env.Name == "HEARTBEAT_PERIOD" {
			if period, err := time.ParseDuration(env.Value); err == nil {
				return period
			}
		}
	}
	return 0
}

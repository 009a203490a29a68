package noderule

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/manager/node"
	"github.com/readygate/readygate/internal/manager/rulecache"
	"github.com/readygate/readygate/internal/text"
)

// standing has everything that the status of a rule is computed from.
type standing struct {
	rule     *noderule.Rule
	summary  noderule.Summary
	failures map[string]node.Failure
	// refusal is why the rule itself cannot be written; nil if it can.
	refusal error
	// unlisted is why the list of rule taints cannot be written; nil if it can. retry is the time until the next
	// attempt.
	unlisted error
	retry    time.Duration
	creation creation
	// blocked are the DaemonSets that report for the rule and do not tolerate its taint. reporters is the number of
	// all DaemonSets that report for it.
	blocked   []string
	reporters int
	// others is the condition SoleController; nil if no other controller has a live lease.
	others *metav1.Condition
}

// cleanedUp reports whether nothing of a deleted rule is left, and no API server adds its taint anymore.
func (s standing) cleanedUp() bool {
	return s.rule.Deleting && s.summary.Carrying == 0 && s.creation.gone
}

// limitedRecheckInterval is the interval at which a status with limited nodes, or with nodes to add, is computed again. A stale
// condition that is reported again on a released node requeues nothing.
const limitedRecheckInterval = 15 * time.Second

// again is the time until the status may change without an event; zero: never.
func (s standing) again(now time.Time) time.Duration {
	again := s.creation.again
	sooner := func(wait time.Duration) {
		if again == 0 || wait < again {
			again = max(wait, statusInterval)
		}
	}
	if s.unlisted != nil {
		sooner(s.retry)
	}
	if !s.summary.Until.IsZero() {
		sooner(s.summary.Until.Sub(now))
	}
	if s.summary.Limited > 0 || s.summary.ToAdd > 0 && s.rule.Ages() {
		sooner(limitedRecheckInterval)
	}
	return again
}

// statusOf computes the status of a rule. Entries that did not change keep their times, so that an equal status needs
// no write.
func statusOf(s standing, old *v1alpha1.NodeReadinessRuleStatus, now metav1.Time) v1alpha1.NodeReadinessRuleStatus {
	rule, summary, failures := s.rule, s.summary, s.failures
	status := v1alpha1.NodeReadinessRuleStatus{
		ObservedGeneration: rule.Generation,
		Conditions:         slices.Clone(old.Conditions),
		TakenOverAt:        old.TakenOverAt,
		Summary:            counts(summary, failures),
		FailedNodes:        failedNodes(failures),
		LimitedNodes:       summary.LimitedNodes,
		NodeEvaluations:    evaluations(summary.Nodes, old.NodeEvaluations, now),
		DryRunResults:      dryRunResults(rule, summary),
	}
	status.ListsTruncated = len(status.NodeEvaluations) < summary.Selected || len(status.FailedNodes) < len(failures)
	if status.TakenOverAt == nil && !rule.Deleting { // a rule deleted by an earlier controller left no records
		status.TakenOverAt = &now
	}
	if rule.DryRun {
		status.DryRunSince = old.DryRunSince
		if status.DryRunSince == nil {
			status.DryRunSince = &now
		}
	}
	if rule.Active() {
		status.AppliedNodes = appliedNodes(summary.Nodes, failures)
	}
	conditions, absent := []metav1.Condition{accepted(rule), enforced(s)}, []string(nil)
	if s.creation.condition != nil {
		conditions = append(conditions, *s.creation.condition)
	}
	if s.reporters > 0 {
		conditions = append(conditions, reportersTolerated(s))
	} else {
		absent = append(absent, v1alpha1.ConditionReportersTolerated)
	}
	if s.others != nil {
		conditions = append(conditions, *s.others)
	} else {
		absent = append(absent, v1alpha1.ConditionSoleController)
	}
	rulecache.SetConditions(&status.Conditions, rule.Generation, now, conditions, absent...)
	return status
}

// reportersTolerated reports a deadlock: a reporter that does not tolerate the taint never starts, and the node stays
// held.
func reportersTolerated(s standing) metav1.Condition {
	if len(s.blocked) == 0 {
		return rulecache.Condition(v1alpha1.ConditionReportersTolerated, true, v1alpha1.ReasonTolerated, "every known reporter DaemonSet of the rule tolerates its taint")
	}
	do := fmt.Sprintf("add the toleration {key: %s, operator: Exists} to its pods", s.rule.Taint.Key)
	if s.rule.AddsTolerations {
		do += "; if the selectors of spec.tolerations match the pods, kubectl rollout restart daemonset also adds it"
	}
	return rulecache.Condition(v1alpha1.ConditionReportersTolerated, false, v1alpha1.ReasonDaemonSetBlocked, fmt.Sprintf(
		"DaemonSet %s reports a condition of the rule and does not tolerate the taint %s: its pods never start on a held node, and the node stays held; %s",
		few(s.blocked, len(s.blocked)), s.rule.ID(), do))
}

func accepted(rule *noderule.Rule) metav1.Condition {
	if rule.Problem != nil {
		return rulecache.Condition(v1alpha1.ConditionAccepted, false, rule.Problem.Reason, rule.Problem.Message)
	}
	return rulecache.Condition(v1alpha1.ConditionAccepted, true, v1alpha1.ReasonAccepted, "the rule is valid and conflicts with no older rule")
}

func enforced(s standing) metav1.Condition {
	rule, summary := s.rule, s.summary
	not := func(reason, format string, args ...any) metav1.Condition {
		return rulecache.Condition(v1alpha1.ConditionEnforced, false, reason, fmt.Sprintf(format, args...))
	}
	switch {
	case s.refusal != nil:
		return not(v1alpha1.ReasonWriteRefused, "the API server rejected a write of this rule; fix the admission policy or the role that rejects it: %v", s.refusal)
	case len(s.failures) > 0:
		first := slices.Min(slices.Collect(maps.Keys(s.failures)))
		return not(v1alpha1.ReasonWriteRefused, "the API server rejected writes of %s; fix the admission policy, the role or the rule; first %s: %s",
			nodes(len(s.failures)), first, s.failures[first].Message)
	case rule.Deleting:
		return not(v1alpha1.ReasonDeleting, "the rule is being deleted; %s", leftover(s))
	case rule.Problem != nil:
		return not(v1alpha1.ReasonNotAccepted, "the rule is not enforced: see the condition Accepted")
	case rule.DryRun && summary.Holding > 0:
		return not(v1alpha1.ReasonDryRun, "dry run: the taint stays on %s that the rule already holds; see status.dryRunResults; set spec.dryRun to false to enforce the rule", nodes(summary.Holding))
	case rule.DryRun:
		return not(v1alpha1.ReasonDryRun, "dry run: see status.dryRunResults; set spec.dryRun to false to enforce the rule")
	case s.unlisted != nil:
		return not(v1alpha1.ReasonWriteRefused, "nodes are held and released, but the manager cannot update the list of rule taints: if this rule is force-deleted, its taints stay on nodes; "+
			"allow the manager to get, create and patch that ConfigMap: %v", s.unlisted)
	case summary.Limited > 0:
		return not(v1alpha1.ReasonLimited, "%s: maxUnavailable %s reached (%d of %s in use held); "+
			"fix the component or its reporter, or raise maxUnavailable: %s", stay(summary.Limited), rule.MaxUnavailable, summary.Away, nodes(summary.InUse), few(summary.LimitedNodes, summary.Limited))
	case rule.Unordered != "":
		return not(v1alpha1.ReasonUnordered, "nodes are held and released, but spec.dependsOn is ignored: %s", rule.Unordered)
	case summary.Unsettled > 0:
		return not(v1alpha1.ReasonProgressing, "updating %s", nodes(summary.Unsettled))
	}
	return rulecache.Condition(v1alpha1.ConditionEnforced, true, v1alpha1.ReasonEnforced, enforcedMessage(rule, summary))
}

// leftover describes what is left of a rule that is being deleted.
func leftover(s standing) string {
	switch {
	case s.summary.Carrying > 0:
		return "removing the taint and the records from " + nodes(s.summary.Carrying)
	case !s.creation.gone:
		return "all nodes are clean, but an API server may still add the taint to new nodes" + s.creation.hint
	}
	return "all nodes are clean"
}

// stay describes the limited nodes.
func stay(n int) string {
	if n == 1 {
		return "1 node stays released although its requirements are unmet"
	}
	return nodes(n) + " stay released although their requirements are unmet"
}

// few joins the first names, and counts the rest.
func few(names []string, all int) string {
	const most = 5
	named := names[:min(most, len(names))]
	text := strings.Join(named, ", ")
	if more := all - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// enforcedMessage describes an enforced rule, with a hint if nodes are stuck or a condition is not reported.
func enforcedMessage(rule *noderule.Rule, summary noderule.Summary) string {
	if summary.Selected == 0 {
		return "no node matches the nodeSelector"
	}
	if summary.Stuck > 0 {
		return fmt.Sprintf("%s of %d held longer than progressDeadlineSeconds; run kubectl readiness nodes to see the unmet conditions", nodes(summary.Stuck), summary.Holding)
	}
	message := "every selected node carries the taint exactly while its requirements are not met"
	if len(rule.DependsOn) > 0 {
		message += ", once the rules of dependsOn have released it"
	}
	if rule.ReleaseStuck && rule.Deadline > 0 {
		message += ", for at most " + rule.Deadline.String() + " (onDeadline Release)"
		if late := summary.Waiting[noderule.CauseDeadline]; late > 0 {
			message += "; " + nodes(late) + " released by the deadline with unmet requirements"
		}
	}
	return message + unreported(summary)
}

// unreported is a hint if a node lacks a condition of the rule.
func unreported(summary noderule.Summary) string {
	if summary.Unreported == 0 {
		return ""
	}
	return fmt.Sprintf("; %s without a condition of the rule: check that its reporter runs there", nodes(summary.Unreported))
}

// counts count all nodes, also those that the lists leave out. Held counts nodes that carry the taint because of the
// rule, not nodes that are to carry it.
func counts(summary noderule.Summary, failures map[string]node.Failure) *v1alpha1.RuleSummary {
	return &v1alpha1.RuleSummary{
		Selected: int32(summary.Selected),
		Held:     int32(summary.Holding),
		Released: int32(summary.Selected - summary.Holding),
		Failed:   int32(len(failures)),
		Stuck:    int32(summary.Stuck),
		Limited:  int32(summary.Limited),
	}
}

func appliedNodes(nodes []noderule.NodeSummary, failures map[string]node.Failure) []string {
	var names []string
	for _, node := range nodes {
		if _, failed := failures[node.Name]; node.Settled && !node.Limited && !failed {
			names = append(names, node.Name)
		}
	}
	return names
}

func failedNodes(failures map[string]node.Failure) []v1alpha1.NodeFailure {
	var failed []v1alpha1.NodeFailure
	for _, name := range slices.Sorted(maps.Keys(failures)) {
		failure := failures[name]
		failed = append(failed, v1alpha1.NodeFailure{
			NodeName:           name,
			Reason:             failure.Reason,
			Message:            text.Cut(failure.Message, text.Event),
			LastEvaluationTime: metav1.NewTime(failure.At).Rfc3339Copy(),
		})
	}
	return failed[:min(len(failed), v1alpha1.MaxListedNodes)]
}

// maxEvaluationBytes bounds the list of evaluations of a rule with many long condition types: an object must stay far
// below the size limit of etcd.
const maxEvaluationBytes = 256 << 10

// sizeOf estimates the size of an evaluation in JSON.
func sizeOf(evaluation v1alpha1.NodeEvaluation) int {
	size := 150 + len(evaluation.NodeName)
	for _, result := range evaluation.ConditionResults {
		size += 80 + len(result.Type)
	}
	return size
}

// evaluations returns the evaluations of the nodes. One that did not change keeps its time.
func evaluations(nodes []noderule.NodeSummary, old []v1alpha1.NodeEvaluation, now metav1.Time) []v1alpha1.NodeEvaluation {
	before := make(map[string]v1alpha1.NodeEvaluation, len(old))
	for _, evaluation := range old {
		before[evaluation.NodeName] = evaluation
	}
	var result []v1alpha1.NodeEvaluation
	size := 0
	for _, node := range nodes {
		evaluation := evaluationOf(node)
		if size += sizeOf(evaluation); size > maxEvaluationBytes {
			break
		}
		was := before[node.Name]
		evaluation.LastEvaluationTime = was.LastEvaluationTime
		if !equality.Semantic.DeepEqual(evaluation, was) {
			evaluation.LastEvaluationTime = now
		}
		result = append(result, evaluation)
	}
	return result
}

func evaluationOf(node noderule.NodeSummary) v1alpha1.NodeEvaluation {
	evaluation := v1alpha1.NodeEvaluation{NodeName: node.Name, TaintStatus: v1alpha1.TaintStatusAbsent}
	if node.Tainted {
		evaluation.TaintStatus = v1alpha1.TaintStatusPresent
	}
	for _, o := range node.Observations {
		evaluation.ConditionResults = append(evaluation.ConditionResults, v1alpha1.ConditionEvaluationResult{
			Type:           o.Requirement.Type,
			CurrentStatus:  known(o.Current),
			RequiredStatus: o.Requirement.RequiredStatus,
			DefaultStatus:  o.Requirement.DefaultStatus,
		})
	}
	return evaluation
}

// known returns the status, or Unknown if it is not a valid one: the API server does not validate conditions of
// nodes, but it validates the status of rules.
func known(status corev1.ConditionStatus) corev1.ConditionStatus {
	switch status {
	case corev1.ConditionTrue, corev1.ConditionFalse:
		return status
	default:
		return corev1.ConditionUnknown
	}
}

func dryRunResults(rule *noderule.Rule, s noderule.Summary) *v1alpha1.DryRunResults {
	if !rule.DryRun || rule.Deleting || rule.Problem != nil {
		return nil
	}
	text := fmt.Sprintf("would add the taint to %s and remove it from %s, of %s selected", nodes(s.ToAdd), nodes(s.ToRemove), nodes(s.Selected))
	if rival := rule.Rival; rival != nil {
		text += fmt.Sprintf("; enforced, it would conflict with rule %q, which manages the same taint on nodes that this rule can also select: only the older rule would be enforced", rival.Name)
	}
	return &v1alpha1.DryRunResults{
		AffectedNodes:   int32(s.Selected),
		TaintsToAdd:     int32(s.ToAdd),
		TaintsToRemove:  int32(s.ToRemove),
		RiskyOperations: int32(s.Unreported),
		Summary:         text + unreported(s),
	}
}

// nodes formats a number of nodes: "1 node", "2 nodes".
func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

package noderule_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

const (
	hold       = networkTaint + "=pending:NoSchedule"
	holdRecord = networkTaint + ":NoSchedule"
)

// planCase says what becomes of a node: its taints and annotations once the plan is
// applied, and the changes that the plan reports. An empty want means that nothing is done.
type planCase struct {
	rules []*v1alpha1.NodeReadinessRule
	node  *noderule.Node

	taints  []string
	notes   []string
	changes []string
}

// untouched is the outcome of a plan with nothing to do.
func untouched(n *noderule.Node, objs ...*v1alpha1.NodeReadinessRule) planCase {
	return planCase{rules: objs, node: n, taints: taintStrings(n.Taints), notes: notes(n, namesOf(objs)...)}
}

func checkPlans(t *testing.T, cases map[string]planCase) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { c.check(t) })
	}
}

func (c planCase) check(t *testing.T) {
	t.Helper()
	book := noderule.NewRulebook(c.rules)
	book.Listed = listedOn(c.node)
	plan := book.Plan(c.node, noon)
	applied := plan.Apply(c.node)
	wantEqual(t, "taints", taintStrings(applied.Taints), c.taints)
	wantEqual(t, "annotations", notes(applied, namesOf(c.rules)...), c.notes)
	wantEqual(t, "changes", changes(plan), c.changes)

	same := slices.Equal(taintStrings(c.node.Taints), c.taints) && maps.Equal(c.node.Annotations, applied.Annotations)
	if plan.Empty() != same {
		t.Errorf("the plan is empty: %t, the node stays as it is: %t", plan.Empty(), same)
	}
	if again := book.Plan(applied, noon); !again.Empty() {
		t.Errorf("applied once, the plan leaves something to plan: %+v", again)
	}
}

// changes are written "Added network", with the taint only if it is not the usual one. What is
// only forgotten is left out: a property checks it.
func changes(plan *noderule.Plan) []string {
	var written []string
	for _, c := range plan.Changes {
		if c.Kind == noderule.Forgotten {
			continue
		}
		words := fmt.Sprintf("%s %s", c.Kind, c.Rule)
		if c.Taint.String() != holdRecord {
			words += " " + c.Taint.String()
		}
		written = append(written, words)
	}
	return written
}

// TestPlanBehaviour is the table that every implementation of this API shares.
func TestPlanBehaviour(t *testing.T) {
	continuous, boot := rule("net"), rule("net", bootstrapOnly)
	met, unmet := reports("NetworkReady", True), reports("NetworkReady", False)
	owns := owned("net", holdRecord)
	checkPlans(t, map[string]planCase{
		"continuous, met, own taint present: removed": {rules: rules(continuous), node: worker(met, tainted(hold), owns),
			changes: []string{"Removed net"}},
		"continuous, met, taint of unknown origin present: removed": {rules: rules(continuous), node: worker(met, tainted(hold)),
			changes: []string{"Removed net"}},
		"continuous, met, taint absent: nothing": untouched(worker(met), continuous),
		"continuous, not met, taint absent: added": {rules: rules(continuous), node: worker(unmet),
			taints: []string{hold}, notes: []string{"net holds (added)"}, changes: []string{"Added net"}},
		"continuous, not met, taint present for the first time: adopted": {rules: rules(continuous), node: worker(unmet, tainted(hold)),
			taints: []string{hold}, notes: []string{"net holds (adopted)"}, changes: []string{"Adopted net"}},
		"continuous, not met, own taint present: kept, and adopted no second time": untouched(worker(unmet, tainted(hold), owns), continuous),

		"bootstrap-only, met, own taint present: removed and remembered": {rules: rules(boot), node: worker(met, tainted(hold), owns),
			notes: []string{"net completed"}, changes: []string{"Removed net", "Completed net"}},
		"bootstrap-only, met, taint of unknown origin present: removed and remembered": {rules: rules(boot), node: worker(met, tainted(hold)),
			notes: []string{"net completed"}, changes: []string{"Removed net", "Completed net"}},
		"bootstrap-only, met, taint absent: remembered": {rules: rules(boot), node: worker(met),
			notes: []string{"net completed"}, changes: []string{"Completed net"}},
		"bootstrap-only, not met, taint absent: added": {rules: rules(boot), node: worker(unmet),
			taints: []string{hold}, notes: []string{"net holds (added)"}, changes: []string{"Added net"}},
		"bootstrap-only, not met, taint present for the first time: adopted": {rules: rules(boot), node: worker(unmet, tainted(hold)),
			taints: []string{hold}, notes: []string{"net holds (adopted)"}, changes: []string{"Adopted net"}},
		"bootstrap-only, not met, own taint present: kept":          untouched(worker(unmet, tainted(hold), owns), boot),
		"bootstrap-only, not met, taint absent, completed: nothing": untouched(worker(unmet, completed("net")), boot),
		"bootstrap-only, not met, taint present, completed: removed": {rules: rules(boot), node: worker(unmet, tainted(hold), owns, completed("net")),
			notes: []string{"net completed"}, changes: []string{"Removed net"}},
		"bootstrap-only, met, completed: remembered no second time": untouched(worker(met, completed("net")), boot),
		"bootstrap-only, completed in the older form: not written again": untouched(
			worker(unmet, annotated(v1alpha1.CompletedPrefix+"net", "x")), boot),
	})
}

func TestPlanTaints(t *testing.T) {
	foreign := []string{notReady + ":NoExecute", "example.com/gpu=yes:NoSchedule"}
	checkPlans(t, map[string]planCase{
		"a taint is added behind foreign ones": {rules: rules(rule("net")), node: worker(tainted(foreign...)),
			taints: append(slices.Clone(foreign), hold), notes: []string{"net holds (added)"}, changes: []string{"Added net"}},
		"foreign taints keep their order when ours goes": {rules: rules(rule("net")),
			node:   worker(reports("NetworkReady", True), tainted(foreign[0], hold, foreign[1]), owned("net", holdRecord)),
			taints: foreign, changes: []string{"Removed net"}},
		"a taint with another value is the same taint and stays as it is": {rules: rules(rule("net")),
			node: worker(tainted(networkTaint + "=other:NoSchedule")), taints: []string{networkTaint + "=other:NoSchedule"},
			notes: []string{"net holds (adopted)"}, changes: []string{"Adopted net"}},
		"a taint with another value is removed like ours": {rules: rules(rule("net")),
			node: worker(reports("NetworkReady", True), tainted(networkTaint+"=other:NoSchedule")), changes: []string{"Removed net"}},
		"a taint with another effect is another taint": {rules: rules(rule("net")),
			node:   worker(tainted(networkTaint + "=pending:NoExecute")),
			taints: []string{networkTaint + "=pending:NoExecute", hold}, notes: []string{"net holds (added)"}, changes: []string{"Added net"}},
		"a taint with another effect stays on release": untouched(
			worker(reports("NetworkReady", True), tainted(networkTaint+"=pending:NoExecute")), rule("net")),
		"a taint that a user removed from a held node is added again": {rules: rules(rule("net")), node: worker(owned("net", holdRecord)),
			taints: []string{hold}, notes: []string{"net holds (added)"}, changes: []string{"Added net"}},
		"a record without its taint goes on release": {rules: rules(rule("net")),
			node: worker(reports("NetworkReady", True), owned("net", holdRecord))},
	})
}

func TestPlanForSeveralRules(t *testing.T) {
	storageTaint := "readiness.k8s.io/StorageReady"
	storage := rule("disk", younger, taintKey(storageTaint), requires(requirement("StorageReady", True)))
	checkPlans(t, map[string]planCase{
		"every rule adds its own taint, the older rule first": {rules: rules(storage, rule("net")), node: worker(),
			taints: []string{hold, storageTaint + "=pending:NoSchedule"}, notes: []string{"disk holds (added)", "net holds (added)"},
			changes: []string{"Added net", "Added disk " + storageTaint + ":NoSchedule"}},
		"one rule releases while another holds": {rules: rules(storage, rule("net")),
			node:   worker(reports("NetworkReady", True), tainted(hold), owned("net", holdRecord)),
			taints: []string{storageTaint + "=pending:NoSchedule"}, notes: []string{"disk holds (added)"},
			changes: []string{"Removed net", "Added disk " + storageTaint + ":NoSchedule"}},
		"no rules ask for nothing": untouched(worker(tainted(hold))),
	})
}

func TestAnAdoptionIsReportedOnce(t *testing.T) {
	book := noderule.NewRulebook(rules(rule("net")))
	first := book.Plan(worker(tainted(hold)), noon)
	wantEqual(t, "first plan", changes(first), []string{"Adopted net"})
	second := book.Plan(first.Apply(worker(tainted(hold))), noon)
	wantEqual(t, "second plan", changes(second), nil)
}

// Nodes come from a shared cache: a plan that wrote into one would corrupt it for everybody.
func TestPlanningDoesNotTouchTheNode(t *testing.T) {
	foreign := []string{"example.com/a:NoSchedule", hold, "example.com/b:NoSchedule"}
	for name, n := range map[string]*noderule.Node{
		"removing": worker(reports("NetworkReady", True), tainted(foreign...), owned("net", holdRecord)),
		"adding":   worker(tainted(foreign[0])),
	} {
		t.Run(name, func(t *testing.T) {
			n.Taints = slices.Grow(n.Taints, 8) // spare capacity, into which append would write
			spare := n.Taints[:cap(n.Taints)]
			taints, annotations := slices.Clone(spare), maps.Clone(n.Annotations)
			noderule.NewRulebook(rules(rule("net", bootstrapOnly))).Plan(n, noon).Apply(n)
			wantEqual(t, "taints", taintStrings(spare), taintStrings(taints))
			if !maps.Equal(n.Annotations, annotations) {
				t.Errorf("annotations: got %v, want %v", n.Annotations, annotations)
			}
		})
	}
}

func TestAPlanAppliesToANodeWithoutAnnotations(t *testing.T) {
	n := worker()
	n.Annotations = nil
	applied := noderule.NewRulebook(rules(rule("net"))).Plan(n, noon).Apply(n)
	wantEqual(t, "annotations", notes(applied, "net"), []string{"net holds (added)"})
}

package noderule_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/noderule"
)

// say formats a verdict: its state, then why the node is held.
func say(v noderule.Verdict) string {
	words := []string{string(v.State)}
	if v.Completed {
		words = append(words, "completed")
	}
	for _, unmet := range v.Unmet {
		words = append(words, unmet.String())
	}
	return strings.Join(words, "; ")
}

type verdictCase struct {
	rule *v1alpha1.NodeReadinessRule
	node *noderule.Node
	want string
}

func checkVerdicts(t *testing.T, cases map[string]verdictCase) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := say(verdictOf(c.rule, c.node)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestEvaluateRequirement(t *testing.T) {
	network := func(options ...ruleOption) *v1alpha1.NodeReadinessRule { return rule("network", options...) }
	mustBe := func(required corev1.ConditionStatus) ruleOption {
		return requires(requirement("NetworkReady", required))
	}
	orElse := func(status corev1.ConditionStatus) ruleOption {
		return requires(withDefault(requirement("NetworkReady", True), status))
	}
	checkVerdicts(t, map[string]verdictCase{
		"a node that has not reported yet is held":         {network(), worker(), "Held; NetworkReady is Unknown, must be True"},
		"a node that reports what is required is released": {network(), worker(reports("NetworkReady", True)), "Released"},
		"a node that reports the contrary is held":         {network(), worker(reports("NetworkReady", False)), "Held; NetworkReady is False, must be True"},
		"a node that does not know is held":                {network(), worker(reports("NetworkReady", Unknown)), "Held; NetworkReady is Unknown, must be True"},
		"a condition without a status counts as Unknown":   {network(), worker(reports("NetworkReady", "")), "Held; NetworkReady is Unknown, must be True"},
		"conditions of other types do not count":           {network(), worker(reports("Ready", True), reports("networkready", True)), "Held; NetworkReady is Unknown, must be True"},

		"False can be required":                                     {network(mustBe(False)), worker(reports("NetworkReady", False)), "Released"},
		"a node with True is held where False is required":          {network(mustBe(False)), worker(reports("NetworkReady", True)), "Held; NetworkReady is True, must be False"},
		"an absent condition is not False":                          {network(mustBe(False)), worker(), "Held; NetworkReady is Unknown, must be False"},
		"Unknown can be required":                                   {network(mustBe(Unknown)), worker(reports("NetworkReady", Unknown)), "Released"},
		"an absent condition is Unknown":                            {network(mustBe(Unknown)), worker(), "Released"},
		"a node with True is held where Unknown is required":        {network(mustBe(Unknown)), worker(reports("NetworkReady", True)), "Held; NetworkReady is True, must be Unknown"},
		"the default counts while the condition is absent":          {network(orElse(True)), worker(), "Released"},
		"the default can hold a node too":                           {network(orElse(False)), worker(), "Held; NetworkReady is False, must be True"},
		"the default does not count once the condition is reported": {network(orElse(True)), worker(reports("NetworkReady", False)), "Held; NetworkReady is False, must be True"},
		"the default does not stand in for Unknown":                 {network(orElse(True)), worker(reports("NetworkReady", Unknown)), "Held; NetworkReady is Unknown, must be True"},
	})
}

func TestEvaluatePolicy(t *testing.T) {
	two := requires(requirement("NetworkReady", True), requirement("StorageReady", True))
	checkVerdicts(t, map[string]verdictCase{
		"allOf: one of two is not enough": {rule("both", two), worker(reports("NetworkReady", True)),
			"Held; StorageReady is Unknown, must be True"},
		"allOf: both release": {rule("both", two), worker(reports("NetworkReady", True), reports("StorageReady", True)), "Released"},
		"allOf: what is missing comes in the order of the spec": {rule("both", two), worker(reports("StorageReady", False)),
			"Held; NetworkReady is Unknown, must be True; StorageReady is False, must be True"},
		"anyOf: the first is enough":  {rule("either", two, anyOf), worker(reports("NetworkReady", True)), "Released"},
		"anyOf: the second is enough": {rule("either", two, anyOf), worker(reports("StorageReady", True)), "Released"},
		"anyOf: none holds, and all are named": {rule("either", two, anyOf), worker(reports("NetworkReady", False)),
			"Held; NetworkReady is False, must be True; StorageReady is Unknown, must be True"},
	})
}

func TestEvaluateSelection(t *testing.T) {
	everywhere := selectsBy(expression("role", "NotIn", "gateway"), expression("zone", "Exists"))
	checkVerdicts(t, map[string]verdictCase{
		"a node without the label is not selected":             {rule("network"), node(), "NotSelected"},
		"a node with another value is not selected":            {rule("network"), node(label("role", "gateway")), "NotSelected"},
		"expressions select":                                   {rule("zones", everywhere), node(label("zone", "a"), reports("NetworkReady", True)), "Released"},
		"all expressions must match":                           {rule("zones", everywhere), node(label("zone", "a"), label("role", "gateway")), "NotSelected"},
		"In takes any of its values":                           {rule("in", selectsBy(expression("role", "In", "gateway", "worker"))), worker(reports("NetworkReady", True)), "Released"},
		"DoesNotExist wants the label away":                    {rule("none", selectsBy(expression("role", "DoesNotExist"))), worker(), "NotSelected"},
		"a rule that is being deleted selects no node":         {rule("network", deleting), worker(), "NotSelected"},
		"a rule that is not accepted selects no node":          {rule("network", taintKey("example.com/x")), worker(), "NotSelected"},
		"a rule that only previews answers as if it were real": {rule("network", dryRun), worker(), "Held; NetworkReady is Unknown, must be True"},
	})
}

func TestEvaluateCompletion(t *testing.T) {
	olderForm := annotated(v1alpha1.CompletedPrefix+"boot", "anything")
	boot := func(options ...ruleOption) *v1alpha1.NodeReadinessRule {
		return rule("boot", append([]ruleOption{bootstrapOnly}, options...)...)
	}
	held, done := "Held; NetworkReady is Unknown, must be True", "Released; completed"
	checkVerdicts(t, map[string]verdictCase{
		"a bootstrap-only rule holds a node that it never released": {boot(), worker(), held},
		"a completed node stays released":                           {boot(), worker(completed("boot")), done},
		"a completed node stays released when it reports trouble":   {boot(), worker(completed("boot"), reports("NetworkReady", False)), done},
		"the value of a completion does not matter":                 {boot(), worker(annotated(completedKey("boot"), "")), done},
		"a first release is not completed yet":                      {boot(), worker(reports("NetworkReady", True)), "Released"},
		"a completion of another rule does not count":               {boot(), worker(completed("other")), held},
		"a continuous rule ignores completion records":              {rule("boot"), worker(completed("boot"), olderForm), held},
		"a completed node that is not selected is not selected":     {boot(), node(completed("boot")), "NotSelected"},

		"the older form counts while the rule is new to us":               {boot(), worker(olderForm), done},
		"the older form counts on a node that is older than the takeover": {boot(takenOverAt(noon)), worker(olderForm, nodeCreatedAt(noon.Add(-time.Second))), done},
		"the older form does not count on a node that joined later":       {boot(takenOverAt(noon)), worker(olderForm, nodeCreatedAt(noon.Add(time.Second))), held},
		"the older form does not count on a node that joined right then":  {boot(takenOverAt(noon)), worker(olderForm, nodeCreatedAt(noon)), held},
		"the newer form counts on any node":                               {boot(takenOverAt(noon)), worker(completed("boot"), nodeCreatedAt(noon.Add(time.Hour))), done},
		"the older form of another rule does not count":                   {boot(), worker(annotated(v1alpha1.CompletedPrefix+"bootstrap", "x")), held},
	})
}

func TestObserveComparesEveryRequirement(t *testing.T) {
	network, storage := requirement("NetworkReady", True), withDefault(requirement("StorageReady", True), False)
	r := compiled(rule("three", requires(network, storage, requirement("GPUReady", False))))
	got := noderule.Observe(r, worker(reports("NetworkReady", True)), noon)
	want := []noderule.Observation{
		{Requirement: network, Current: True},
		{Requirement: storage, Current: False, Missing: true, Since: dayOne},
		{Requirement: requirement("GPUReady", False), Current: Unknown, Missing: true, Since: dayOne},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !got[0].Met() || got[1].Met() || got[2].Met() {
		t.Errorf("only the first requirement is met: %v", got)
	}
}

package view_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/plugin/view"
)

const (
	unset   = "policy (the pod has no condition " + programmed + ")"
	another = "example.com/other"
	openKey = "open 10.0.0.7 b1 2026-03-01T11:59:00Z"
)

var running = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}

func holds(r *podv1alpha1.PodReadinessRule) { r.Spec.StartHold = true }

// asALine formats a row: state, since when, and what for.
func asALine(p view.Pod) string {
	text := string(p.State)
	if p.Late {
		text += ", late"
	}
	if !p.Since.IsZero() {
		text += " " + view.Age(p.Since, noon)
	}
	parts := []string{text}
	for _, g := range p.Gates {
		if g.Waits() {
			parts = append(parts, g.For)
		}
	}
	for _, u := range p.Ungated {
		parts = append(parts, u.Why)
	}
	return strings.Join(parts, ": ")
}

func closedFor(words string) podOption {
	return gateIs(False, podv1alpha1.ReasonWaiting, "waiting for "+words)
}

func TestALineOfAPod(t *testing.T) {
	blind := here("")
	blind.Namespace = nil
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		place view.Place
		rules []*podv1alpha1.PodReadinessRule
		want  string
	}{
		"closed, with a message":    {web(closedFor(unset)), here(""), podRules(podRule("network")), "Waiting 40s: " + unset},
		"closed, without a message": {web(), here(""), podRules(podRule("network")), "Waiting 60s: components that the agent has not reported yet"},
		"no sandbox":                {web(homeless), here(""), podRules(podRule("network")), "Waiting: a network: the kubelet has not reported a sandbox"},
		"a new sandbox":             {web(gateIs(False, podv1alpha1.ReasonNewSandbox, "it is new")), here(""), podRules(podRule("network")), "Waiting 40s: its components: it is new"},
		"no node":                   {web(unscheduled), here(""), podRules(podRule("network")), "Waiting: a node: it is not scheduled"},
		"no agent":                  {web(), without(here("")), podRules(podRule("network")), "Waiting 60s: an agent: node w-1 has no live agent"},
		"an agent that is gone":     {web(closedFor(unset)), without(here("")), podRules(podRule("network")), "Waiting 40s: " + unset + "; node w-1 has no live agent"},
		"all ready":                 {web(podSays(True)), here(""), podRules(podRule("network")), "Waiting: its gate to be opened"},
		"late":                      {web(closedFor(unset)), here(""), podRules(podRule("network", due(40, podv1alpha1.DeadlineReport))), "Waiting, late 40s: " + unset},
		"not late yet":              {web(closedFor(unset)), here(""), podRules(podRule("network", due(41, podv1alpha1.DeadlineReport))), "Waiting 40s: " + unset},
		"late because of an unready component": {web(closedFor(unset)), here(""), podRules(podRule("network"), podRule("other", parts(pathToPod()), due(1, podv1alpha1.DeadlineReport))),
			"Waiting 40s: " + unset},
		"open, by another account":            {web(gateIs(True, "Programmed", "mine"), keyed("closed 10.0.0.7 b1 2026-03-01T11:59:00Z")), here(""), podRules(podRule("network")), "Waiting 60s: policy; its gate was set to True by another account, not by Readygate"},
		"open, with the reason of a plugin":   {web(gateIs(True, "Programmed", "mine")), here(""), podRules(podRule("network")), "Open"},
		"open, by another account, and ready": {web(gateIs(True, "Programmed", "mine"), podSays(True)), here(""), podRules(podRule("network")), "Open"},
		"open, with a copied reason":          {web(gateIs(True, podv1alpha1.ReasonAllReady, ""), keyed("closed 10.0.0.7 b1 2026-03-01T11:59:00Z")), here(""), podRules(podRule("network")), "Waiting 60s: policy; its gate was set to True by another account, not by Readygate"},
		"open":                                {web(gateIs(True, podv1alpha1.ReasonAllReady, "")), here(""), podRules(podRule("network")), "Open"},
		"open, latch still closed": {web(gateIs(True, podv1alpha1.ReasonAllReady, ""), latched, keyed(openKey), latchIs(running)), here(""), podRules(podRule("network", holds)),
			"Waiting 40s: its latch: gate open, latch still closed"},
		"open, latch has ended": {web(gateIs(True, podv1alpha1.ReasonAllReady, ""), latched, keyed(openKey), latchIs(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})), here(""),
			podRules(podRule("network", holds)), "Open"},
		"ungated": {web(gateless, func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(dawn.Add(-time.Hour)) }), here(""), podRules(podRule("network")), "Ungated: the pod is older than the rule: recreate it to gate it"},
		"one closed, one missing": {web(closedFor(unset)), here(""), podRules(podRule("network"), podRule("other", opens(another), ofPods("web"), func(r *podv1alpha1.PodReadinessRule) {
			r.CreationTimestamp = metav1.NewTime(noon)
		})), "Waiting 40s: " + unset + ": the pod is older than the rule: recreate it to gate it"},
		"not selected":                 {web(gateless), here(""), podRules(podRule("network", ofPods("db"))), "NotSelected"},
		"a gate of another controller": {web(func(p *corev1.Pod) { delete(p.Annotations, podv1alpha1.GatesAnnotation) }), here(""), nil, "NotSelected"},
		"selected no more":             {web(), here(""), podRules(podRule("network", ofPods("db"))), "Waiting: its gate to be opened: no PodReadinessRule selects the pod anymore"},
		"a rule that goes":             {web(), here(""), podRules(podRule("network", goes)), "Waiting: its gate to be opened: the PodReadinessRule of this gate was deleted"},
		"open, and abandoned":          {web(gateIs(True, podv1alpha1.ReasonRuleDeleted, "")), here(""), nil, "NotSelected"},
		"opted out later":              {web(optedOut), here(""), podRules(podRule("network")), "Waiting: its gate to be opened: no PodReadinessRule selects the pod anymore"},
		"unknown labels":               {web(closedFor(unset)), blind, podRules(podRule("network", ofNamespaces("gate"))), "Waiting 40s: " + unset},
		"ended":                        {web(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), here(""), podRules(podRule("network")), "Over"},
		"going":                        {web(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }), here(""), podRules(podRule("network")), "Over"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := asALine(view.NewPodBook(c.rules).Pod(c.pod, c.place, noon)); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// Rows need no permission for nodes: without the node, the results come from the gate's own condition.
func TestALineNeedsNoNode(t *testing.T) {
	place := here(True)
	place.Node = nil
	rules := podRules(podRule("network", parts(flannelOnNode(), policyEngine()), due(1, podv1alpha1.DeadlineReport)), podRule("other", parts(flannelOnNode())))
	row := view.NewPodBook(rules).Pod(web(closedFor(unset), keyed("closed 10.0.0.7 b1 2026-03-01T11:59:00Z")), place, noon)
	if got, want := asALine(row), "Waiting, late 40s: "+unset; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPodsAreCountedAndOrdered(t *testing.T) {
	named := func(name string, options ...podOption) *corev1.Pod {
		return web(append(options, func(p *corev1.Pod) { p.Name = name })...)
	}
	pods := []*corev1.Pod{
		named("open", gateIs(True, podv1alpha1.ReasonAllReady, "")), named("ungated", gateless), named("later", closedFor(unset)), named("longest"),
		named("homeless", homeless), named("other", gateless, optedOut), named("ended", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
	}
	all := view.NewPodBook(podRules(podRule("network", due(50, podv1alpha1.DeadlineReport)))).Pods(pods, func(*corev1.Pod) view.Place { return here("") }, noon)
	var names []string
	for _, p := range all.Pods {
		names = append(names, p.Name)
	}
	if want := []string{"longest", "later", "homeless", "ungated", "open"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if want := (view.PodCount{Waiting: 3, Late: 1, Open: 1, Ungated: 1}); all.Count != want || all.Count.All() != 5 {
		t.Errorf("counts %+v, want %+v", all.Count, want)
	}
	if none := view.NewPodBook(nil).Pods(nil, nil, noon); none.Pods == nil || none.Count.All() != 0 {
		t.Errorf("none: %+v", none)
	}
}

// The message of an agent is parsed correctly, whatever the reasons of components contain.
func TestComponentResultsAreReadFromTheGate(t *testing.T) {
	for name, c := range map[string]struct {
		rules  []*podv1alpha1.PodReadinessRule
		answer podrule.Answer
		node   corev1.ConditionStatus
		pod    []podOption
		want   string
	}{
		"one rule": {podRules(podRule("network", parts(policyEngine(), flannelOnNode(), pathToPod()))), podrule.Answer{Why: "no answer (timeout), try again"}, True, nil,
			"policy no (the pod has no condition " + programmed + "), flannel yes, path no (no answer (timeout), try again)"},
		"a reason that looks like another component": {podRules(podRule("network", parts(pathToPod(), policyEngine()))), podrule.Answer{Why: "x), other (y"}, "", nil,
			"path no (x), other (y), policy no (the pod has no condition " + programmed + ")"},
		"two rules": {podRules(podRule("a", parts(pathToPod())), podRule("b", parts(policyEngine(), pathToPod()))), podrule.Answer{Why: "no answer"}, "", nil,
			"path no (no answer), policy no (the pod has no condition " + programmed + "), path no (no answer)"},
		"an unnamed component is ready": {podRules(podRule("network", parts(flannelOnNode(), pathToPod()))), podrule.Answer{Yes: true}, False, nil,
			"flannel no (node condition " + flannel + " is False), path yes"},
		"an open gate": {podRules(podRule("network", parts(policyEngine(), flannelOnNode(), pathToPod()))), podrule.Answer{Yes: true}, True, []podOption{podSays(True)},
			"policy yes, flannel yes, path yes"},
		"opened by the deadline": {podRules(podRule("network", parts(pathToPod(), flannelOnNode()), due(5, podv1alpha1.DeadlineOpen))), podrule.Answer{Why: "no answer"}, True, nil,
			"path no (no answer), flannel yes"},
	} {
		t.Run(name, func(t *testing.T) {
			pod, place := web(c.pod...), here(c.node)
			agent(t, pod, place, c.rules, c.answer)
			explanation := view.NewPodBook(c.rules).Explanation(pod, place, nil, nil, noon)
			var got []string
			for _, component := range explanation.Chapters[0].Components {
				text := component.Name + " " + string(component.Result)
				if component.Why != "" {
					text += " (" + component.Why + ")"
				}
				got = append(got, text)
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("got  %q\nwant %q (%+v)", strings.Join(got, ", "), c.want, pod.Status.Conditions)
			}
		})
	}
}

// A cut message has no results of the components that it does not name.
func TestComponentsAfterTheCutOfAMessageAreUnknown(t *testing.T) {
	rules := podRules(podRule("network", parts(pathToPod(), podv1alpha1.Component{Name: "second", Reach: &podv1alpha1.ReachComponent{Port: 80}})))
	explanation := view.NewPodBook(rules).Explanation(web(closedFor("path (it is a long st…")), here(""), nil, nil, noon)
	got := fmt.Sprint(explanation.Chapters[0].Components[0].Result, " ", explanation.Chapters[0].Components[0].Why, ", ", explanation.Chapters[0].Components[1].Result)
	if got != "no it is a long st, unknown" {
		t.Errorf("got %q", got)
	}
}

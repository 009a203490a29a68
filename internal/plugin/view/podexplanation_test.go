package view_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/plugin/view"
)

func podExplanation(pod *corev1.Pod, place view.Place, rules []*podv1alpha1.PodReadinessRule) view.PodExplanation {
	return view.NewPodBook(rules).Explanation(pod, place, nil, nil, noon)
}

func TestHeadlineOfAPod(t *testing.T) {
	network := podRules(podRule("network"))
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		rules []*podv1alpha1.PodReadinessRule
		want  string
	}{
		"waits":      {web(closedFor(unset)), network, "shop/web has waited 40s for " + unset},
		"late":       {web(closedFor(unset)), podRules(podRule("network", due(30, podv1alpha1.DeadlineReport))), "shop/web is late: it has waited 40s for " + unset},
		"no sandbox": {web(homeless), network, "shop/web waits for a network: the kubelet has not reported a sandbox"},
		"two gates": {web(closedFor(unset), func(p *corev1.Pod) {
			p.Spec.ReadinessGates = append(p.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: another})
			p.Annotations[podv1alpha1.GatesAnnotation] += " " + another
		}), podRules(podRule("network"), podRule("other", opens(another), parts(pathToPod()))),
			"shop/web has waited 60s for " + unset + "; and for components that the agent has not reported yet"},
		"open": {web(gateIs(True, podv1alpha1.ReasonAllReady, "all")), network, "shop/web does not wait: every gate that belongs to a rule is open"},
		"opened by the deadline": {web(gateIs(True, podv1alpha1.ReasonDeadline, "opened after the deadline of 30s, still waiting for "+unset)), network,
			"shop/web may have no network, although its gate is open: opened after the deadline of 30s, still waiting for " + unset},
		"without its gate": {web(gateless, func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(dawn.Add(-time.Hour)) }), network,
			"shop/web does not carry the gate of rule network, which selects it: the pod is older than the rule: recreate it to gate it"},
		"ended": {web(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), network, "shop/web has ended (Succeeded) and no longer waits for its network"},
		"going": {web(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }), network, "shop/web is being deleted and no longer waits for its network"},

		"no rule":      {web(gateless), nil, "there is no PodReadinessRule, so shop/web does not wait for its network"},
		"host network": {web(gateless, func(p *corev1.Pod) { p.Spec.HostNetwork = true }), network, "no rule selects shop/web: it uses the network of its node (hostNetwork)"},
		"mirror":       {web(gateless, func(p *corev1.Pod) { p.Annotations[corev1.MirrorPodAnnotationKey] = "x" }), network, "no rule selects shop/web: it is the mirror pod of a static pod"},
		"opted out":    {web(gateless, optedOut), network, `no rule selects shop/web: it opts out (label readygate.dev/opt-out: "true")`},
		"reserved namespace": {web(gateless, func(p *corev1.Pod) { p.Namespace = "kube-system" }), network,
			"no rule selects kube-system/web: rule network does not, because namespace kube-system is selected only by a rule that names it with the label kubernetes.io/metadata.name in its namespaceSelector"},
		"labels of the pod": {web(gateless), podRules(podRule("network", ofPods("db"))), "no rule selects shop/web: rule network does not, because its podSelector requires app=db, but the pod has app=web"},
		"labels of the namespace": {web(gateless), podRules(podRule("network", ofNamespaces("gate"))),
			"no rule selects shop/web: rule network does not, because its namespaceSelector requires gate=on, but namespace shop has no label gate"},
		"a rule that goes": {web(gateless), podRules(podRule("network", goes)), "no rule selects shop/web: rule network does not, because the rule is being deleted"},
		"two rules":        {web(gateless), podRules(podRule("network", ofPods("db")), podRule("other", goes)), "no rule selects shop/web"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := podExplanation(c.pod, here(""), c.rules).Headline; got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestTheChapterOfAGate(t *testing.T) {
	network := podRules(podRule("network"))
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		rules []*podv1alpha1.PodReadinessRule
		want  string
	}{
		"closed":             {web(closedFor(unset)), network, "is closed for 40s: ComponentsNotReady, waiting for " + unset},
		"not reported yet":   {web(), network, "is closed for 60s, and waits for components that the agent has not reported yet"},
		"by another account": {web(gateIs(True, "Programmed", "mine"), keyed("closed 10.0.0.7 b1 2026-03-01T11:59:00Z"), wroteGate("network-plugin")), network, "is True but was not set by Readygate, and waits for policy; its gate was set to True by \"network-plugin\", not by Readygate"},
		"open":               {web(gateIs(True, podv1alpha1.ReasonAllReady, "1 component is ready")), network, "is open for 40s: AllComponentsReady, 1 component is ready"},
		"of another boot":    {web(gateIs(True, podv1alpha1.ReasonAllReady, ""), keyed("open 10.0.0.7 b0 2026-03-01T11:59:00Z")), network, "is open, and about to be closed: the pod has a new sandbox, or its node has rebooted: earlier results of its components do not count"},
		"all ready":          {web(podSays(True)), network, "is closed, and about to be opened: 1 component of rule network is ready"},
		"abandoned":          {web(), nil, "is closed, and about to be opened: the PodReadinessRule of this gate was deleted"},
		"opted out":          {web(optedOut), network, "is closed, and about to be opened: no PodReadinessRule selects the pod anymore"},
	} {
		t.Run(name, func(t *testing.T) {
			explanation := podExplanation(c.pod, here(""), c.rules)
			if len(explanation.Chapters) != 1 || explanation.Chapters[0].Text != c.want {
				t.Errorf("got  %+v\nwant %q", explanation.Chapters, c.want)
			}
		})
	}
}

// Each case names words that the first advice must have.
func TestAdviceAboutAPod(t *testing.T) {
	network := podRules(podRule("network"))
	foreign := func(p *corev1.Pod) {
		p.Spec.ReadinessGates = append(p.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: another})
	}
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		place view.Place
		rules []*podv1alpha1.PodReadinessRule
		want  []string
	}{
		"an absent condition":       {web(closedFor(unset)), here(""), network, []string{"Component policy is not ready (the pod has no condition " + programmed + ")", "check it on node w-1: kubectl get pods -A", "spec.nodeName=w-1"}},
		"a condition that is False": {web(closedFor(unset), podSays(False), writtenBy("policy-agent")), here(""), network, []string{"(condition " + programmed + " is False); policy-agent wrote that"}},
		"a condition of the node":   {web(), here(False), podRules(podRule("network", parts(flannelOnNode()))), []string{"Component flannel is not ready (node condition " + flannel + " is False)", "kubectl describe node w-1"}},
		"one that only the agent can ask": {web(), here(""), podRules(podRule("network", parts(pathToPod()))),
			[]string{"Only the agent of node w-1 can check path (TCP port 9, from the node)", "kubectl get pods -n readygate-system"}},
		"one that the node does not reach": {web(closedFor("path (no response within 1s)")), here(""), podRules(podRule("network", parts(pathToPod()))),
			[]string{"Component path is not ready (no response within 1s); node w-1 itself must reach the pod"}},
		"a file that is not there": {web(closedFor("cni (no such file)")), here(""), podRules(podRule("network", parts(podv1alpha1.Component{Name: "cni", File: &podv1alpha1.FileComponent{Path: "/run/cni/{namespace}_{name}"}}))),
			[]string{"check for the file /run/cni/shop_web on node w-1", "podgate.hostPaths"}},
		"an endpoint that fails": {web(closedFor("cni (answered 503)")), here(""), podRules(podRule("network", parts(podv1alpha1.Component{Name: "cni", HTTP: &podv1alpha1.HTTPComponent{URL: "http://127.0.0.1:9099/{ip}"}}))),
			[]string{"request it on node w-1 itself: curl -ki 'http://127.0.0.1:9099/10.0.0.7'"}},
		"no agent, ever":                  {web(), agentless(here("")), network, []string{"No agent has renewed a Lease for node w-1", "podgate.enabled=true"}},
		"no agent":                        {web(closedFor(unset)), without(here("")), network, []string{"The agent of node w-1 no longer renews its Lease and does not open the gate", "kubectl get pods -n readygate-system -o wide --field-selector spec.nodeName=w-1"}},
		"no agent, and all ready":         {web(podSays(True)), without(here("")), network, []string{"The agent of node w-1 no longer renews its Lease"}},
		"no agent, and a deadline":        {web(), without(here("")), podRules(podRule("network", due(30, podv1alpha1.DeadlineOpen))), []string{"The gate is about to open; if it stays closed, check that the manager"}},
		"no node":                         {web(unscheduled), here(""), network, []string{"check why it is not scheduled: kubectl describe pod web -n shop"}},
		"no sandbox":                      {web(homeless), here(""), network, []string{"The pod has no network yet", "kubectl describe pod web -n shop"}},
		"opted out":                       {web(optedOut), here(""), network, []string{"The gate is about to open"}},
		"no rule":                         {web(), here(""), nil, []string{"The gate is about to open"}},
		"without its gate":                {web(gateless), here(""), podRules(podRule("network", stands(metav1.ConditionTrue, podv1alpha1.ReasonEnforced, ""))), []string{"To make the pod wait for its network, recreate the pod"}},
		"without its gate, and no agent":  {web(gateless), here(""), podRules(podRule("network", stands(metav1.ConditionFalse, podv1alpha1.ReasonNoAgent, "no agent"))), []string{"To make the pod wait for its network, recreate the pod"}},
		"without its gate, as all pods":   {web(gateless), here(""), podRules(podRule("network", stands(metav1.ConditionFalse, "BindingMissing", "there is no binding"))), []string{"Pods are created without the gate of rule network (BindingMissing): there is no binding. After fixing that, recreate the pod"}},
		"without its gate, which settles": {web(gateless), here(""), podRules(podRule("network", stands(metav1.ConditionFalse, "Progressing", "wait"))), []string{"Wait until pods are created with the gate of rule network: kubectl wait --for=condition=Enforced prr/network. Then recreate the pod"}},
		"without its gate, and the change not observed": {web(gateless), here(""), podRules(podRule("network", stands(metav1.ConditionTrue, podv1alpha1.ReasonEnforced, ""), func(r *podv1alpha1.PodReadinessRule) { r.Generation++ })),
			[]string{"No manager has observed the current generation of rule network"}},
		"without its gates, of which one is not put on pods": {web(gateless), here(""), podRules(podRule("a", stands(metav1.ConditionTrue, podv1alpha1.ReasonEnforced, "")), podRule("b", opens(another), stands(metav1.ConditionFalse, "BindingMissing", "there is no binding"))),
			[]string{"Pods are created without the gate of rule b (BindingMissing)"}},
		"a family that the pod does not have": {web(closedFor("cni (the pod has no IPv6 address)")), here(""), podRules(podRule("network", parts(podv1alpha1.Component{Name: "cni", HTTP: &podv1alpha1.HTTPComponent{URL: "http://127.0.0.1:9099/{ipv6}"}}))),
			[]string{"use {ip}"}},
		"an endpoint with a quote": {web(closedFor("cni (answered 503)")), here(""), podRules(podRule("network", parts(podv1alpha1.Component{Name: "cni", HTTP: &podv1alpha1.HTTPComponent{URL: "http://127.0.0.1:9099/'{uid}"}}))),
			[]string{`curl -ki 'http://127.0.0.1:9099/'\''uid-web'`}},
		"a latch that never opens": {web(closedFor("started (condition ContainersReady is False)"), latched), here(""), podRules(podRule("network", parts(podv1alpha1.Component{Name: "started", PodCondition: &podv1alpha1.ConditionComponent{Type: "ContainersReady"}}))),
			[]string{"Component started is not ready", "it cannot become ready: it requires started containers, and the latch lets containers start only after this gate opens", "Set another gate in the rule with startHold or in rule network"}},
		"a node that may not be read":                 {web(), unseen(here("")), podRules(podRule("network", parts(flannelOnNode()))), []string{"Component flannel is not ready", "kubectl describe node w-1"}},
		"without its gate, and the rule not observed": {web(gateless), here(""), network, []string{"No manager has observed the current generation of rule network", "kubectl get pods -o wide -n readygate-system"}},
		"a gate that another account opened": {web(gateIs(True, "Programmed", ""), keyed("closed 10.0.0.7 b1 2026-03-01T11:59:00Z"), wroteGate("network-plugin")), here(""), network,
			[]string{"Gate " + podv1alpha1.DefaultGate + " was set to True by \"network-plugin\" while a component is not ready", "a condition type of its own", "podCondition component", "podgate.reserveGates=true"}},
		"gates of others":     {web(gateIs(True, podv1alpha1.ReasonAllReady, ""), foreign), here(""), network, []string{"check the components that set them: " + another}},
		"not Ready anyway":    {web(gateIs(True, podv1alpha1.ReasonAllReady, "")), here(""), network, []string{"not Ready for another reason: kubectl describe pod web -n shop"}},
		"all is well":         {web(gateIs(True, podv1alpha1.ReasonAllReady, ""), ready), here(""), network, nil},
		"nothing to wait for": {web(gateless), here(""), nil, nil},
		"it is over":          {web(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), here(""), network, nil},
		"a latch that fails": {web(gateIs(True, podv1alpha1.ReasonAllReady, ""), keyed("open 10.0.0.9 b1 2026-03-01T11:59:00Z"), latched, latchIs(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}})), here(""), network,
			[]string{"The latch does not run (ImagePullBackOff no such image), so the pod's containers do not start: kubectl describe pod web -n shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			next := podExplanation(c.pod, c.place, c.rules).Next
			if len(c.want) == 0 {
				if len(next) > 0 {
					t.Errorf("got %q, want none", next)
				}
				return
			}
			for _, words := range c.want {
				if len(next) == 0 || !strings.Contains(next[0], words) {
					t.Errorf("%q is missing in %q", words, next)
				}
			}
		})
	}
}

// The advice names every component that is not ready, and why the start of the pod is not held.
func TestAdviceNamesEverythingThatIsMissing(t *testing.T) {
	hold := func(r *podv1alpha1.PodReadinessRule) { r.Spec.StartHold = true }
	rule := podRule("network", hold, parts(flannelOnNode(), policyEngine(), pathToPod()))
	pod := web(closedFor("flannel (node condition " + flannel + " is False), policy (the pod has no condition " + programmed + ")"))
	next := podExplanation(pod, here(False), podRules(rule)).Next
	want := []string{"Component flannel is not ready", "Component policy is not ready", "Rule network sets startHold, but this pod has no latch: the pod was created earlier"}
	if !slices.EqualFunc(next, want, strings.HasPrefix) {
		t.Errorf("got %q", next)
	}
	latched(pod)
	if next := podExplanation(pod, here(False), podRules(rule)).Next; !slices.EqualFunc(next, want[:2], strings.HasPrefix) {
		t.Errorf("with a latch: got %q", next)
	}
}

func ready(p *corev1.Pod) { set(p, string(corev1.PodReady), True, "", "", noon) }

// latchIs sets the status of the latch container.
func latchIs(state corev1.ContainerState) podOption {
	return func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: podv1alpha1.LatchName, State: state}}
	}
}

// writtenBy sets the writer of the policy engine's condition.
func writtenBy(manager string) podOption { return wrote(manager, programmed) }

// wroteGate sets the writer of the default gate's condition.
func wroteGate(manager string) podOption { return wrote(manager, podv1alpha1.DefaultGate) }

func wrote(manager, conditionType string) podOption {
	return func(p *corev1.Pod) {
		at := metav1.NewTime(noon)
		p.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: manager, Time: &at, Operation: metav1.ManagedFieldsOperationUpdate,
			FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{"k:{\"type\":\"` + conditionType + `\"}":{".":{},"f:status":{}}}}}`),
		}}
	}
}

func TestTheLatchOfAPod(t *testing.T) {
	network := podRules(podRule("network"))
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		state view.LatchState
		want  string
	}{
		"none":              {web(), view.LatchNone, "is absent: the pod's containers start without waiting for its network"},
		"no key":            {web(latched), view.LatchWaiting, "waits: its key has not been written yet"},
		"no room for a key": {web(latched, func(p *corev1.Pod) { p.Annotations["example.com/filler"] = strings.Repeat("x", 262144-200) }), view.LatchWaiting, "waits: the pod's annotations have no room for its key; remove some"},
		"closed":            {web(latched, keyed("closed 10.0.0.7 b1 2026-03-01T11:59:00Z")), view.LatchWaiting, "waits: its key is closed"},
		"another sandbox":   {web(latched, keyed("open 10.0.0.6 b1 2026-03-01T11:00:00Z")), view.LatchWaiting, "waits: its key belongs to another sandbox, with address 10.0.0.6"},
		"no such key":       {web(latched, keyed("sesame")), view.LatchWaiting, `waits: annotation readygate.dev/latch is "sesame", which is not a valid key`},
		"open":              {web(latched, keyed("open 10.0.0.7 b1 2026-03-01T11:59:00Z")), view.LatchOpen, "is open for this sandbox; the kubelet has yet to deliver the key"},
		"open for good":     {web(latched, keyed("always RuleDeleted")), view.LatchOpen, "is open for every sandbox (RuleDeleted)"},
		"delivered late":    {web(latched, keyed(openKey+" "), latchIs(running)), view.LatchWaiting, "is still closed, although its key is open: the kubelet has not delivered the key, or has not reported that the latch ended"},
		"passed":            {web(latched, latchIs(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})), view.LatchOpen, "has ended; the pod's containers may start"},
	} {
		t.Run(name, func(t *testing.T) {
			if latch := podExplanation(c.pod, here(""), network).Latch; latch.State != c.state || latch.Text != c.want {
				t.Errorf("got %s, %q, want %s, %q", latch.State, latch.Text, c.state, c.want)
			}
		})
	}
}

// While the latch is closed, the explanation of an open gate reports it, and what to do.
func TestExplanationOfAClosedLatch(t *testing.T) {
	explanation := podExplanation(web(gateIs(True, podv1alpha1.ReasonAllReady, ""), latched, keyed(openKey), latchIs(running)), here(""), podRules(podRule("network", holds)))
	if want := "shop/web has waited 40s for its latch: gate open, latch still closed"; explanation.Headline != want {
		t.Errorf("the headline is %q, want %q", explanation.Headline, want)
	}
	if c := explanation.Chapters[0]; !strings.Contains(c.Text, "is open for 40s, but the latch of the pod is still closed") {
		t.Errorf("the gate %q", c.Text)
	}
	if len(explanation.Next) != 1 || !strings.Contains(explanation.Next[0], "writes the key again") || !strings.Contains(explanation.Next[0], "kubectl logs web -n shop -c readygate-latch") {
		t.Errorf("what to do: %q", explanation.Next)
	}
}

func TestPodExplanationListsOnlyNetworkEvents(t *testing.T) {
	event := func(minutes int, reason, by, name string) corev1.Event {
		return corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: name, UID: "uid-web"}, Reason: reason, ReportingController: by,
			LastTimestamp: metav1.NewTime(noon.Add(-time.Duration(minutes) * time.Minute)),
		}
	}
	explanation := view.NewPodBook(nil).Explanation(web(), here(""), []corev1.Event{
		event(1, podv1alpha1.EventLate, podv1alpha1.Reporter, "web"), event(3, "FailedCreatePodSandBox", "kubelet", "web"),
		event(2, "Pulled", "kubelet", "web"), event(4, podv1alpha1.EventLate, podv1alpha1.Reporter, "other"),
	}, []string{"the node: permission denied"}, noon)
	var got []string
	for _, e := range explanation.Events {
		got = append(got, e.Reason)
	}
	if strings.Join(got, " ") != "FailedCreatePodSandBox NetworkNotReady" || len(explanation.Unseen) != 1 {
		t.Errorf("got %v, unseen %v", got, explanation.Unseen)
	}
}

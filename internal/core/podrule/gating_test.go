package podrule_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
)

var (
	noon = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	yes  = podrule.Answer{Yes: true}
)

const programmed = "policy.example.com/programmed"

// ruleOption changes a rule under test.
type ruleOption func(*v1alpha1.PodReadinessRule)

func rule(name string, options ...ruleOption) *v1alpha1.PodReadinessRule {
	obj := &v1alpha1.PodReadinessRule{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
		Spec:       v1alpha1.PodReadinessRuleSpec{Components: []v1alpha1.Component{byPodCondition("policy")}},
	}
	for _, option := range options {
		option(obj)
	}
	return obj
}

func byPodCondition(name string) v1alpha1.Component {
	return v1alpha1.Component{Name: name, PodCondition: &v1alpha1.ConditionComponent{Type: programmed}}
}

func byReach(name string) v1alpha1.Component {
	return v1alpha1.Component{Name: name, Reach: &v1alpha1.ReachComponent{}}
}

func components(all ...v1alpha1.Component) ruleOption {
	return func(r *v1alpha1.PodReadinessRule) { r.Spec.Components = all }
}

func deadline(seconds int32, action v1alpha1.DeadlineAction) ruleOption {
	return func(r *v1alpha1.PodReadinessRule) { r.Spec.DeadlineSeconds, r.Spec.OnDeadline = &seconds, action }
}

func gate(name string) ruleOption { return func(r *v1alpha1.PodReadinessRule) { r.Spec.Gate = name } }

func startHold(r *v1alpha1.PodReadinessRule) { r.Spec.StartHold = true }

func closesOnNotReady(r *v1alpha1.PodReadinessRule) { r.Spec.ClosePolicy = v1alpha1.CloseOnNotReady }

func deleting(r *v1alpha1.PodReadinessRule) { r.DeletionTimestamp = &metav1.Time{Time: noon} }

func namespaces(exact map[string]v1alpha1.LabelValue) ruleOption {
	return func(r *v1alpha1.PodReadinessRule) {
		r.Spec.NamespaceSelector = &v1alpha1.LabelSelector{MatchLabels: exact}
	}
}

func pods(exact map[string]v1alpha1.LabelValue) ruleOption {
	return func(r *v1alpha1.PodReadinessRule) {
		r.Spec.PodSelector = &v1alpha1.LabelSelector{MatchLabels: exact}
	}
}

// world is a pod that gets every patch, a clock, and components with results.
type world struct {
	t       *testing.T
	rules   []*podrule.Rule
	subject podrule.Subject
	answers map[string]podrule.Answer // by what is asked
	now     time.Time
	writes  int
	last    podrule.Decision
}

// newWorld has a pod with the default gate that has had a sandbox for a moment.
func newWorld(t *testing.T, rules ...*v1alpha1.PodReadinessRule) *world {
	t.Helper()
	w := &world{t: t, now: noon, answers: map[string]podrule.Answer{}, subject: podrule.Subject{
		Namespace: map[string]string{corev1.LabelMetadataName: "shop"},
		Node:      podrule.Node{BootID: "b1"},
		History:   &podrule.History{},
		Delivers:  true,
		Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", Annotations: map[string]string{v1alpha1.GatesAnnotation: v1alpha1.DefaultGate}},
			Spec:       corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: v1alpha1.DefaultGate}}},
		},
	}}
	w.follow(rules...)
	w.sandbox("10.0.0.7")
	return w
}

func (w *world) follow(rules ...*v1alpha1.PodReadinessRule) { w.rules = podrule.NewRules(rules) }

// sandbox is the kubelet that reports a sandbox with this address, or none.
func (w *world) sandbox(ip string) {
	status := corev1.ConditionFalse
	if ip != "" {
		status, w.subject.Pod.Status.PodIP, w.subject.Pod.Status.PodIPs = corev1.ConditionTrue, ip, []corev1.PodIP{{IP: ip}}
	}
	w.set(corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: status, LastTransitionTime: metav1.NewTime(w.now)})
}

// started is the kubelet that reports a started container of the pod.
func (w *world) started() {
	w.subject.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(w.now)}}}}
}

// reboot boots the node. For two minutes its kubelet may not have checked all pods.
func (w *world) reboot() {
	w.subject.Node.BootID, w.subject.Node.Booted, w.subject.Node.Settles = "b2", w.now, w.now.Add(2*time.Minute)
}

func (w *world) setComponent(status corev1.ConditionStatus) {
	w.set(corev1.PodCondition{Type: programmed, Status: status, LastTransitionTime: metav1.NewTime(w.now)})
}

func (w *world) set(condition corev1.PodCondition) {
	conditions := &w.subject.Pod.Status.Conditions
	*conditions = slices.DeleteFunc(*conditions, func(c corev1.PodCondition) bool { return c.Type == condition.Type })
	*conditions = append(*conditions, condition)
}

func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

// settle decides and writes until nothing is to be written.
func (w *world) settle() {
	w.t.Helper()
	for range 5 {
		if !w.step() {
			return
		}
	}
	w.t.Fatalf("it is written again and again: %+v", w.last.Patch)
}

// step decides once, and reports whether a patch was written.
func (w *world) step() bool {
	w.last = w.decide()
	w.write(w.last.Patch)
	w.subject.History.Record(&w.subject, &w.last, w.now)
	return w.last.Patch != nil
}

func (w *world) decide() podrule.Decision {
	return podrule.Decide(w.rules, &w.subject, func(p podrule.Probe) (podrule.Answer, bool) {
		answer, ok := w.answers[p.Path+p.URL+p.Address]
		return answer, ok
	}, w.now)
}

func (w *world) write(patch *podrule.Patch) {
	if patch == nil {
		return
	}
	w.writes++
	for _, c := range patch.Conditions {
		w.set(c)
	}
	if patch.Key != "" {
		w.subject.Pod.Annotations[v1alpha1.LatchAnnotation] = patch.Key
	}
}

func (w *world) condition(kind string) *corev1.PodCondition {
	for i := range w.subject.Pod.Status.Conditions {
		if string(w.subject.Pod.Status.Conditions[i].Type) == kind {
			return &w.subject.Pod.Status.Conditions[i]
		}
	}
	return nil
}

// expect holds status and reason of a gate, e.g. "True AllComponentsReady", and the key.
func (w *world) expect(want, key string) {
	w.t.Helper()
	got := "absent"
	if is := w.condition(v1alpha1.DefaultGate); is != nil {
		got = string(is.Status) + " " + is.Reason
	}
	if got != want {
		w.t.Fatalf("the gate is %s, want %s (%+v)", got, want, w.last.Verdicts)
	}
	if is := w.subject.Pod.Annotations[v1alpha1.LatchAnnotation]; is != key {
		w.t.Fatalf("the key is %q, want %q", is, key)
	}
}

// A pod whose components are ready when it has its sandbox is written once.
func TestOneWriteOpensAGate(t *testing.T) {
	w := newWorld(t, rule("network"))
	w.setComponent("True")
	w.settle()
	w.expect("True AllComponentsReady", "open 10.0.0.7 b1 2026-11-16T12:00:00Z")
	if w.writes != 1 {
		t.Errorf("%d writes", w.writes)
	}
}

// The message names a slow component, and its result opens the gate: two writes.
func TestWaitingPodNamesItsUnreadyComponents(t *testing.T) {
	w := newWorld(t, rule("network", components(byPodCondition("policy"), byReach("path"))))
	w.settle()
	w.expect("absent", "")
	w.answers["10.0.0.7:9"] = podrule.Answer{Why: "no answer"}
	w.settle()
	w.expect("absent", "")
	if !w.last.Until.Equal(noon.Add(5 * time.Second)) {
		t.Errorf("it is evaluated again at %v", w.last.Until)
	}
	w.pass(5 * time.Second)
	w.setComponent("False")
	w.settle()
	w.expect("False ComponentsNotReady", "closed 10.0.0.7 b1 2026-11-16T12:00:00Z")
	is := w.condition(v1alpha1.DefaultGate)
	if want := "waiting for policy (condition policy.example.com/programmed is False), path (no answer)"; is.Message != want {
		t.Errorf("the message is %q, want %q", is.Message, want)
	}
	if !is.LastTransitionTime.Time.Equal(noon) {
		t.Errorf("it waits since %v", is.LastTransitionTime)
	}
	w.setComponent("True")
	w.answers["10.0.0.7:9"] = yes
	w.settle()
	w.expect("True AllComponentsReady", "open 10.0.0.7 b1 2026-11-16T12:00:00Z")
	if w.writes != 2 {
		t.Errorf("%d writes", w.writes)
	}
}

// All components of all rules with the same gate count, and are named with their rule.
func TestRulesWithOneGateOpenItTogether(t *testing.T) {
	w := newWorld(t, rule("a"), rule("b", components(byReach("path"))))
	w.setComponent("True")
	w.answers["10.0.0.7:9"] = podrule.Answer{Why: "no answer"}
	w.pass(6 * time.Second)
	w.settle()
	w.expect("False ComponentsNotReady", "closed 10.0.0.7 b1 2026-11-16T12:00:00Z")
	w.answers["10.0.0.7:9"] = yes
	w.settle()
	w.expect("True AllComponentsReady", "open 10.0.0.7 b1 2026-11-16T12:00:00Z")
}

// An open gate closes only with closePolicy OnNotReady, and opens again when the component is ready.
func TestClosePolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		options []ruleOption
		want    string
	}{
		"never":  {nil, "True AllComponentsReady"},
		"always": {[]ruleOption{closesOnNotReady}, "False ComponentsNotReady"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rule("network", tc.options...))
			w.setComponent("True")
			w.settle()
			w.pass(time.Hour)
			w.setComponent("False")
			w.settle()
			if is := w.condition(v1alpha1.DefaultGate); string(is.Status)+" "+is.Reason != tc.want {
				t.Fatalf("the gate is %s %s", is.Status, is.Reason)
			}
			w.setComponent("True")
			w.settle()
			w.expect("True AllComponentsReady", "open 10.0.0.7 b1 2026-11-16T12:00:00Z")
		})
	}
}

// An agent that has just started has no results yet: no gate closes because of this.
func TestARestartClosesNothing(t *testing.T) {
	w := newWorld(t, rule("network", components(byReach("path")), closesOnNotReady))
	w.answers["10.0.0.7:9"] = yes
	w.settle()
	clear(w.answers)
	w.pass(time.Minute)
	w.settle()
	w.expect("True AllComponentsReady", "open 10.0.0.7 b1 2026-11-16T12:00:00Z")
	if len(w.last.Probes) != 1 {
		t.Errorf("it asks %v", w.last.Probes)
	}
	w.answers["10.0.0.7:9"] = podrule.Answer{Why: "no answer", Noes: podrule.Refusals - 1}
	w.settle()
	w.expect("True AllComponentsReady", "open 10.0.0.7 b1 2026-11-16T12:00:00Z")
	w.answers["10.0.0.7:9"] = podrule.Answer{Why: "no answer", Noes: podrule.Refusals}
	w.settle()
	w.expect("False ComponentsNotReady", "closed 10.0.0.7 b1 2026-11-16T12:00:00Z")
}

// A new sandbox closes the gate before it opens again, whether or not the agent observed that the pod had none
// in between, and a component must report ready again.
func TestNewSandboxClosesTheGateUntilItsComponentsAreReady(t *testing.T) {
	for name, watched := range map[string]bool{"seen": true, "not seen": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rule("network"))
			w.setComponent("True")
			w.settle()
			w.pass(time.Minute)
			if watched {
				w.sandbox("")
				w.settle()
				w.expect("False NewSandbox", "closed - b1 - again")
				w.pass(time.Second)
			}
			since := w.now
			w.sandbox("10.0.0.8")
			if !watched {
				w.step()
				w.expect("False NewSandbox", "closed 10.0.0.8 b1 2026-11-16T12:01:00Z again")
			}
			w.pass(5 * time.Second)
			w.settle()
			w.pass(11 * time.Second)
			w.settle()
			if is := w.condition(v1alpha1.DefaultGate); is.Status != "False" || !strings.Contains(is.Message, "is older than the pod's sandbox") {
				t.Fatalf("what was said before counts: %+v", is)
			}
			w.setComponent("True")
			w.settle()
			w.expect("True AllComponentsReady", "open 10.0.0.8 b1 "+since.Format(time.RFC3339)+" again")
		})
	}
}

// The kubelet may report a new sandbox with the address of the previous one for a moment: no gate opens because of this.
func TestAddressOfThePreviousSandboxOpensNothing(t *testing.T) {
	w := newWorld(t, rule("network", components(byReach("path"))))
	w.answers["10.0.0.7:9"] = yes
	w.settle()
	w.pass(time.Minute)
	w.sandbox("10.0.0.7")
	w.settle()
	w.expect("False NewSandbox", "closed 10.0.0.7 b1 2026-11-16T12:01:00Z again")
	w.pass(time.Second)
	w.subject.Pod.Status.PodIP = "10.0.0.8"
	w.settle()
	w.expect("False NewSandbox", "closed 10.0.0.8 b1 2026-11-16T12:01:00Z again")
	w.pass(10 * time.Second) // images are pulled
	w.settle()
	w.expect("False NewSandbox", "closed 10.0.0.8 b1 2026-11-16T12:01:00Z again")
	w.started()
	w.answers["10.0.0.8:9"] = yes
	w.settle()
	w.expect("True AllComponentsReady", "open 10.0.0.8 b1 2026-11-16T12:01:00Z again")
}

// A component can be ready shortly before the kubelet reports the sandbox.
func TestComponentMayReportBeforeTheKubeletReportsTheSandbox(t *testing.T) {
	w := newWorld(t, rule("network"))
	w.setComponent("True")
	w.settle()
	w.pass(time.Minute)
	w.sandbox("")
	w.settle()
	w.pass(time.Second)
	w.setComponent("True")
	w.pass(3 * time.Second)
	w.sandbox("10.0.0.8")
	w.started()
	w.settle()
	w.expect("True AllComponentsReady", "open 10.0.0.8 b1 2026-11-16T12:01:04Z again")
}

// After a boot the status has the previous sandbox for a while: the gate closes, and stays closed until the kubelet has
// created a new sandbox.
func TestGateIsClosedFromABootUntilANewSandbox(t *testing.T) {
	w := newWorld(t, rule("network", components(byReach("path"))))
	w.answers["10.0.0.7:9"] = yes
	w.settle()
	w.pass(time.Minute)
	w.reboot()
	w.settle()
	w.expect("False NewSandbox", "closed - b2 2026-11-16T12:00:00Z again")
	w.pass(time.Second)
	w.sandbox("")
	w.settle()
	w.sandbox("10.0.0.7") // the same address
	w.started()
	w.settle()
	w.expect("True AllComponentsReady", "open 10.0.0.7 b2 2026-11-16T12:01:01Z again")
}

// A node condition from before the boot does not count.
func TestANodeConditionFromBeforeTheBootDoesNotCount(t *testing.T) {
	w := newWorld(t, rule("network", components(v1alpha1.Component{Name: "flannel", NodeCondition: &v1alpha1.ConditionComponent{Type: "FlannelReady"}})))
	w.subject.Node.Booted = noon.Add(-time.Minute)
	stale := corev1.NodeCondition{Type: "FlannelReady", Status: "True", LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour)), LastHeartbeatTime: metav1.NewTime(noon.Add(-2 * time.Minute))}
	w.subject.Node.Conditions = []corev1.NodeCondition{stale}
	w.pass(5 * time.Second)
	w.settle()
	w.expect("False ComponentsNotReady", "closed 10.0.0.7 b1 2026-11-16T12:00:00Z")
	w.subject.Node.Conditions[0].LastHeartbeatTime = metav1.NewTime(noon)
	w.settle()
	w.expect("True AllComponentsReady", "open 10.0.0.7 b1 2026-11-16T12:00:00Z")
}

// A deadline reports or opens, and is counted from the sandbox, or from when the gate closed again.
func TestDeadline(t *testing.T) {
	w := newWorld(t, rule("network", deadline(30, v1alpha1.DeadlineReport)))
	w.pass(29 * time.Second)
	w.settle()
	if v := w.last.Verdicts[0]; len(v.Late) > 0 || !w.last.Until.Equal(noon.Add(30*time.Second)) {
		t.Fatalf("too early: %+v, until %v", v, w.last.Until)
	}
	w.pass(time.Second)
	w.settle()
	if v := w.last.Verdicts[0]; len(v.Late) != 1 || v.Open {
		t.Fatalf("not late: %+v", v)
	}
	w.follow(rule("network", deadline(30, v1alpha1.DeadlineOpen)))
	w.settle()
	w.expect("True DeadlineExceeded", "open 10.0.0.7 b1 2026-11-16T12:00:00Z")
	if is := w.condition(v1alpha1.DefaultGate); !strings.Contains(is.Message, "opened after the deadline of 30s, still waiting for policy") {
		t.Errorf("the message is %q", is.Message)
	}
}

// One rule without onDeadline Open is enough to keep a late pod waiting.
func TestDeadlineOpensAGateOnlyIfEveryRuleOpensOnDeadline(t *testing.T) {
	w := newWorld(t, rule("a", deadline(5, v1alpha1.DeadlineOpen)), rule("b"))
	w.pass(time.Minute)
	w.settle()
	w.expect("False ComponentsNotReady", "closed 10.0.0.7 b1 2026-11-16T12:00:00Z")
}

func TestDeadlineStartsAgainWhenAGateCloses(t *testing.T) {
	w := newWorld(t, rule("network", closesOnNotReady, deadline(30, v1alpha1.DeadlineOpen)))
	w.setComponent("True")
	w.settle()
	w.pass(time.Hour)
	w.setComponent("False")
	w.settle()
	w.expect("False ComponentsNotReady", "closed 10.0.0.7 b1 2026-11-16T12:00:00Z")
	w.pass(30 * time.Second)
	w.settle()
	w.expect("True DeadlineExceeded", "open 10.0.0.7 b1 2026-11-16T12:00:00Z")
}

// A gate that no rule has anymore is open permanently; a gate of another controller is
// none of our business.
func TestAbandonedGates(t *testing.T) {
	elsewhere := rule("elsewhere", namespaces(map[string]v1alpha1.LabelValue{"team": "other"}))
	for name, tc := range map[string]struct {
		rules   []*v1alpha1.PodReadinessRule
		foreign bool
		want    string
		key     string
	}{
		"no rule":                          {nil, false, "True RuleDeleted", "always RuleDeleted"},
		"a rule that goes":                 {[]*v1alpha1.PodReadinessRule{rule("network", deleting)}, false, "True RuleDeleted", "always RuleDeleted"},
		"a rule that goes and another one": {[]*v1alpha1.PodReadinessRule{rule("network", deleting), elsewhere}, false, "True RuleDeleted", "always RuleDeleted"},
		"a rule that selects others":       {[]*v1alpha1.PodReadinessRule{elsewhere}, false, "True NotSelected", "always NotSelected"},
		"a rule that goes, not ours":       {[]*v1alpha1.PodReadinessRule{rule("network", deleting)}, true, "absent", ""},
		"one goes, one stays":              {[]*v1alpha1.PodReadinessRule{rule("network", deleting), rule("other")}, false, "absent", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.rules...)
			if tc.foreign {
				delete(w.subject.Pod.Annotations, v1alpha1.GatesAnnotation)
			}
			w.settle()
			w.expect(tc.want, tc.key)
		})
	}
}

// latch gives the pod a latch.
func (w *world) latch() {
	w.subject.Pod.Spec.InitContainers = []corev1.Container{{Name: v1alpha1.LatchName}}
}

// The latch waits for gates of rules that hold the start, and for no others.
func TestTheLatchWaitsForRulesThatHoldTheStart(t *testing.T) {
	const other = "example.com/other"
	w := newWorld(t, rule("network", startHold), rule("other", gate(other), components(byReach("path"))))
	w.subject.Pod.Spec.ReadinessGates = append(w.subject.Pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: other})
	w.latch()
	w.setComponent("True")
	w.settle()
	w.expect("True AllComponentsReady", "open 10.0.0.7 b1 2026-11-16T12:00:00Z")
	if is := w.condition(other); is != nil && is.Status == "True" {
		t.Errorf("the other gate is open: %+v", is)
	}
}

// Pods that no rule may select, and those that are over, are left alone.
func TestPodsThatAreLeftAlone(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"hostNetwork": func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		"mirror":      func(p *corev1.Pod) { p.Annotations[corev1.MirrorPodAnnotationKey] = "x" },
		"opted out":   func(p *corev1.Pod) { p.Labels = map[string]string{v1alpha1.OptOutLabel: v1alpha1.OptOut} },
		"windows":     func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} },
		"by selector": func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "windows"} },
		"going":       func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} },
		"done":        func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		"failed":      func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
		"no gate":     func(p *corev1.Pod) { p.Spec.ReadinessGates = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rule("network"))
			delete(w.subject.Pod.Annotations, v1alpha1.GatesAnnotation)
			w.setComponent("True")
			change(w.subject.Pod)
			w.settle()
			w.expect("absent", "")
		})
	}
}

// A pod that opts out when it has a gate already is not left with it closed.
func TestAPodThatOptsOutLaterIsOpened(t *testing.T) {
	w := newWorld(t, rule("network"))
	w.subject.Pod.Labels = map[string]string{v1alpha1.OptOutLabel: v1alpha1.OptOut}
	w.settle()
	w.expect("True NotSelected", "always NotSelected")
}

// A latch that is open for one sandbox is opened for all of them when no rule selects the pod anymore: otherwise it
// would wait forever in the next one.
func TestAbandonedLatchIsOpenedForEverySandbox(t *testing.T) {
	for name, decide := range map[string]func(w *world){
		"by the agent":     func(w *world) { w.settle() },
		"without an agent": func(w *world) { w.write(podrule.Orphan(w.rules, &w.subject, w.now).Patch) },
		"by a sweep":       func(w *world) { w.write(podrule.Abandoned(w.rules, &w.subject, w.now).Patch) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rule("network", startHold))
			w.latch()
			w.setComponent("True")
			w.settle()
			w.follow()
			decide(w)
			w.expect("True AllComponentsReady", "always RuleDeleted")
		})
	}
}

// Without a latch there is nothing to write when a rule is deleted.
func TestOpenGateIsNotWrittenWhenItsRuleIsDeleted(t *testing.T) {
	w := newWorld(t, rule("network"))
	w.setComponent("True")
	w.settle()
	w.follow()
	w.settle()
	if w.writes != 1 {
		t.Errorf("%d writes", w.writes)
	}
}

func TestSelects(t *testing.T) {
	tests := map[string]struct {
		rule      *v1alpha1.PodReadinessRule
		namespace string
		want      bool
	}{
		"everything":                {rule("r"), "shop", true},
		"not kube-system":           {rule("r"), "kube-system", false},
		"not our own namespace":     {rule("r"), podrule.OwnNamespace, false},
		"kube-system by a label":    {rule("r", namespaces(map[string]v1alpha1.LabelValue{"team": "a"})), "kube-system", false},
		"kube-system by name":       {rule("r", namespaces(map[string]v1alpha1.LabelValue{corev1.LabelMetadataName: "kube-system"})), "kube-system", true},
		"a label of the namespace":  {rule("r", namespaces(map[string]v1alpha1.LabelValue{"team": "a"})), "shop", true},
		"another one":               {rule("r", namespaces(map[string]v1alpha1.LabelValue{"team": "b"})), "shop", false},
		"a label of the pod":        {rule("r", pods(map[string]v1alpha1.LabelValue{"app": "web"})), "shop", true},
		"another label of the pod":  {rule("r", pods(map[string]v1alpha1.LabelValue{"app": "db"})), "shop", false},
		"by name with the operator": {rule("r", byName("In", "kube-system", "shop")), "kube-system", true},
		"others than those by name": {rule("r", byName("NotIn", "shop")), "kube-system", false},
		"by a name without a value": {rule("r", byName("Exists")), "kube-system", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Labels: map[string]string{"app": "web"}}}
			if got := podrule.NewRule(tc.rule).Selects(pod, map[string]string{"team": "a"}); got != tc.want {
				t.Errorf("selects it: %v", got)
			}
		})
	}
}

func byName(operator metav1.LabelSelectorOperator, values ...v1alpha1.LabelValue) ruleOption {
	return func(r *v1alpha1.PodReadinessRule) {
		r.Spec.NamespaceSelector = &v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: corev1.LabelMetadataName, Operator: operator, Values: values}}}
	}
}

// A probe contains the names of the pod: the result for another pod does not count.
func TestProbes(t *testing.T) {
	w := newWorld(t, rule("network", components(
		v1alpha1.Component{Name: "calico", File: &v1alpha1.FileComponent{Path: "/var/run/calico/endpoint-status/k8s {namespace}%2F{name} eth0", Contains: "{ip}/32"}},
		v1alpha1.Component{Name: "agent", HTTP: &v1alpha1.HTTPComponent{URL: "http://127.0.0.1:9099/pods/{uid}/{ipv6}"}},
		v1alpha1.Component{Name: "path", Reach: &v1alpha1.ReachComponent{Port: 80}})))
	w.subject.Pod.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.7"}, {IP: "fd00::7"}}
	w.settle()
	want := []podrule.Probe{
		{Kind: podrule.File, Path: "/var/run/calico/endpoint-status/k8s shop%2Fweb eth0", Contains: "10.0.0.7/32"},
		{Kind: podrule.HTTP, URL: "http://127.0.0.1:9099/pods/u1/fd00::7"},
		{Kind: podrule.Reach, Address: "10.0.0.7:80"},
	}
	if !slices.Equal(w.last.Probes, want) {
		t.Errorf("it asks %+v, want %+v", w.last.Probes, want)
	}
	w.subject.Pod.Status.PodIP = "fd00::7"
	w.settle()
	if got := w.last.Probes[2].Address; got != "[fd00::7]:80" {
		t.Errorf("it reaches %q", got)
	}
}

// A template that names an address that the pod does not have is answered with no: what is left of it
// could be true of any pod.
func TestTemplateWithAMissingAddressIsNotReady(t *testing.T) {
	w := newWorld(t, rule("network", components(v1alpha1.Component{Name: "calico", File: &v1alpha1.FileComponent{Path: "/run/{name}", Contains: "{ipv6}"}})))
	w.answers["/run/web"] = yes
	w.pass(5 * time.Second)
	w.settle()
	w.expect("False ComponentsNotReady", "closed 10.0.0.7 b1 2026-11-16T12:00:00Z")
}

// A latch in a virtual machine sees the boot of that: it is not compared.
func TestLatchKeyOfAVirtualMachineHasNoBootID(t *testing.T) {
	w := newWorld(t, rule("network"))
	class := "kata"
	w.subject.Pod.Spec.RuntimeClassName = &class
	w.setComponent("True")
	w.settle()
	w.expect("True AllComponentsReady", "open 10.0.0.7 - 2026-11-16T12:00:00Z")
}

// Without an agent only gates without a rule, or after their deadline, are opened; no gate is closed.
func TestOrphans(t *testing.T) {
	for name, tc := range map[string]struct {
		rules  []*v1alpha1.PodReadinessRule
		waited time.Duration
		want   string
		key    string
	}{
		"no deadline":         {[]*v1alpha1.PodReadinessRule{rule("r")}, time.Hour, "absent", ""},
		"a deadline to come":  {[]*v1alpha1.PodReadinessRule{rule("r", deadline(60, v1alpha1.DeadlineOpen))}, 59 * time.Second, "absent", ""},
		"one that reports":    {[]*v1alpha1.PodReadinessRule{rule("r", deadline(60, v1alpha1.DeadlineReport))}, time.Hour, "absent", ""},
		"one that opens":      {[]*v1alpha1.PodReadinessRule{rule("r", deadline(60, v1alpha1.DeadlineOpen))}, time.Minute, "True AgentGone", "always AgentGone"},
		"a rule that is gone": {nil, 0, "True RuleDeleted", "always RuleDeleted"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.rules...)
			w.setComponent("True") // only an agent may hear it
			w.pass(tc.waited)
			w.write(podrule.Orphan(w.rules, &w.subject, w.now).Patch)
			w.expect(tc.want, tc.key)
		})
	}
}

// The manager has fewer facts about a node than its agent: it uses the decisions that the agent has written.
func TestAnOrphanThatItsAgentHadWritten(t *testing.T) {
	w := newWorld(t, rule("network", deadline(60, v1alpha1.DeadlineOpen)))
	w.pass(6 * time.Second)
	w.settle()
	w.expect("False ComponentsNotReady", "closed 10.0.0.7 b1 2026-11-16T12:00:00Z")
	w.pass(time.Minute)
	w.subject.Node = podrule.Node{}
	w.write(podrule.Orphan(w.rules, &w.subject, w.now).Patch)
	w.expect("True AgentGone", "always AgentGone")
}

// An open pod on a node without an agent is open for every caller.
func TestAnOpenOrphanIsNotWaiting(t *testing.T) {
	w := newWorld(t, rule("network"))
	w.setComponent("True")
	w.settle()
	w.subject.Node = podrule.Node{}
	if d := podrule.Orphan(w.rules, &w.subject, w.now); !d.Verdicts[0].Open {
		t.Errorf("it is %+v", d.Verdicts[0])
	}
}

// Words that alternate are not written each time.
func TestAlternatingMessagesAreNotWrittenEachTime(t *testing.T) {
	w := newWorld(t, rule("network", components(byReach("path"))))
	for i := range 30 {
		w.answers["10.0.0.7:9"] = podrule.Answer{Why: []string{"refused", "no route"}[i%2]}
		w.pass(time.Second)
		w.settle()
	}
	if w.writes > 4 {
		t.Errorf("%d writes in half a minute", w.writes)
	}
}

// A gate that was opened by a deadline does not close because the component is still not ready, also with closePolicy
// OnNotReady; once the component was ready, the gate may close again.
func TestGateOpenedByTheDeadlineDoesNotFlap(t *testing.T) {
	w := newWorld(t, rule("network", closesOnNotReady, deadline(30, v1alpha1.DeadlineOpen)))
	w.pass(30 * time.Second)
	w.settle()
	w.pass(time.Hour)
	w.settle()
	w.expect("True DeadlineExceeded", "open 10.0.0.7 b1 2026-11-16T12:00:00Z")
	w.setComponent("True")
	w.settle()
	w.expect("True AllComponentsReady", "open 10.0.0.7 b1 2026-11-16T12:00:00Z")
	w.setComponent("False")
	w.settle()
	w.expect("False ComponentsNotReady", "closed 10.0.0.7 b1 2026-11-16T12:00:00Z")
}

// A component that reports ready again with a new probe time counts in a new sandbox.
func TestNewProbeTimeCountsInANewSandbox(t *testing.T) {
	w := newWorld(t, rule("network"))
	w.setComponent("True")
	w.settle()
	w.pass(time.Minute)
	w.sandbox("10.0.0.8")
	w.started()
	w.settle()
	is := w.condition(programmed)
	is.LastProbeTime = metav1.NewTime(w.now)
	w.settle()
	w.expect("True AllComponentsReady", "open 10.0.0.8 b1 2026-11-16T12:01:00Z again")
}

// A patch that finds another pod of the same name has missed, and nothing is wrong.
func TestMissed(t *testing.T) {
	uid := field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "u2", "field is immutable")}
	other := field.ErrorList{field.Invalid(field.NewPath("spec"), "x", "forbidden")}
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"gone":        {apierrors.NewNotFound(pods, "web"), true},
		"another one": {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web", uid), true},
		"invalid":     {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web", other), false},
		"a conflict":  {apierrors.NewConflict(pods, "web", errors.New("try again")), false},
		"forbidden":   {apierrors.NewForbidden(pods, "web", errors.New("no")), false},
		"nothing":     {nil, false},
	} {
		if got := podrule.Missed(tc.err); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestOrphansStayOpen(t *testing.T) {
	w := newWorld(t, rule("network"))
	w.setComponent("True")
	w.settle()
	w.pass(time.Minute)
	w.sandbox("10.0.0.8")
	if patch := podrule.Orphan(w.rules, &w.subject, w.now).Patch; patch != nil {
		t.Errorf("it writes %+v", patch)
	}
}

// An agent that comes back leaves open what was opened without it, until there is a new sandbox.
func TestReturningAgentKeepsWhatTheManagerOpened(t *testing.T) {
	w := newWorld(t, rule("network", deadline(60, v1alpha1.DeadlineOpen)))
	w.pass(time.Hour)
	w.write(podrule.Orphan(w.rules, &w.subject, w.now).Patch)
	w.settle()
	w.expect("True AgentGone", "open 10.0.0.7 b1 2026-11-16T12:00:00Z")
	w.pass(time.Minute)
	w.sandbox("10.0.0.8")
	w.step()
	w.expect("False NewSandbox", "closed 10.0.0.8 b1 2026-11-16T13:01:00Z again")
}

func TestTally(t *testing.T) {
	w := newWorld(t, rule("network", deadline(30, v1alpha1.DeadlineReport)))
	rules := w.rules
	var tally podrule.Tally
	count := func() { tally.Count(rules[0], &w.subject, &w.last) }

	w.pass(time.Minute)
	w.settle()
	count() // waiting, and late
	w.setComponent("True")
	w.settle()
	count() // open
	w.subject.Pod.Spec.ReadinessGates = nil
	w.subject.Pod.CreationTimestamp = metav1.NewTime(noon.Add(-2 * time.Hour))
	w.settle()
	count() // without
	w.subject.Pod.Spec.HostNetwork = true
	count() // not selected

	tally.Cut(10)
	if tally.Gated != 2 || tally.Open != 1 || tally.Waiting != 1 || tally.Late != 1 || tally.Ungated != 1 {
		t.Errorf("it counts %+v", tally)
	}
	if len(tally.Waits) != 1 || !strings.Contains(tally.Waits[0].Why, "waiting for policy") || len(tally.Without) != 1 || !strings.Contains(tally.Without[0].Why, "older than the rule") {
		t.Errorf("it lists %+v and %+v", tally.Waits, tally.Without)
	}
	var sum podrule.Tally
	for range 3 {
		sum.AddFrom("n", &tally)
	}
	sum.Cut(2)
	if sum.Gated != 6 || len(sum.Waits) != 2 || len(sum.Without) != 2 {
		t.Errorf("three of them are %+v", sum)
	}
}

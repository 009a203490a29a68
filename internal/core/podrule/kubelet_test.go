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

// address is the kubelet that reports the pod's address, or none yet: it reports it after it has pulled images, long after
// it reported the sandbox.
func (w *world) address(ip string) {
	w.subject.Pod.Status.PodIP, w.subject.Pod.Status.PodIPs = ip, nil
	if ip != "" {
		w.subject.Pod.Status.PodIPs = []corev1.PodIP{{IP: ip}}
	}
	w.subject.Seen = w.now
}

// What is written while a new sandbox has no address yet is not held against it when it has one.
func TestASandboxWhoseAddressComesLater(t *testing.T) {
	for name, before := range map[string]func(w *world){
		"after a boot": func(w *world) {
			w.setComponent("True")
			w.settle()
			w.pass(time.Hour)
			w.reboot()
			w.sandbox("10.0.0.9")
			w.address("")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rule("network"))
			before(w)
			w.settle()
			if is := w.condition(v1alpha1.DefaultGate); is.Status != "False" {
				t.Fatalf("without an address it is %+v", is)
			}
			w.pass(time.Second)
			w.address("10.0.0.9")
			w.started()
			w.setComponent("True")
			w.settle()
			if is := w.condition(v1alpha1.DefaultGate); is.Status != "True" || is.Reason != v1alpha1.ReasonAllReady {
				t.Errorf("with its address it is %+v", is)
			}
		})
	}
}

// After a clock was set, the node seems to have booted later than it has.
func TestAClockThatIsSetClosesNothing(t *testing.T) {
	w := newWorld(t, rule("network"))
	w.subject.Node.Booted, w.subject.Node.Settles = noon.Add(-30*time.Second), noon.Add(time.Minute)
	w.setComponent("True")
	w.settle()
	w.pass(time.Hour)
	w.subject.Node.Booted, w.subject.Node.Settles = noon.Add(time.Hour-30*time.Second), w.now.Add(time.Minute) // and a new agent
	w.settle()
	w.expect("True AllComponentsReady", "open 10.0.0.7 b1 2026-11-16T12:00:00Z")
	if w.writes != 1 {
		t.Errorf("%d writes", w.writes)
	}
}

// A pod without a key then seems to be from before the boot. After the time in which the kubelet checks all pods, the
// reported sandbox counts.
func TestSandboxOlderThanTheBootIsAcceptedAfterTheSettleTime(t *testing.T) {
	w := newWorld(t, rule("network"))
	w.subject.Node.Booted, w.subject.Node.Settles = noon.Add(time.Hour), noon.Add(2*time.Hour)
	w.pass(2*time.Hour - time.Second)
	w.setComponent("True")
	w.settle()
	w.expect("absent", "")
	if !w.last.Until.Equal(noon.Add(2 * time.Hour)) {
		t.Errorf("it is evaluated again at %v", w.last.Until)
	}
	w.pass(time.Second)
	w.settle()
	w.expect("True AllComponentsReady", "open 10.0.0.7 b1 2026-11-16T12:00:00Z")
}

// A pod waits since its address is known: before that no component can program it or be probed.
func TestADeadlineBeginsWithTheAddress(t *testing.T) {
	for name, component := range map[string]v1alpha1.Component{"probed": byReach("path"), "reported": byPodCondition("policy")} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rule("network", components(component), deadline(60, v1alpha1.DeadlineOpen)))
			w.address("")
			w.settle()
			w.pass(90 * time.Second) // images are pulled
			w.address("10.0.0.7")
			w.settle()
			w.expect("absent", "")
			w.pass(200 * time.Millisecond)
			w.setComponent("True")
			w.answers["10.0.0.7:9"] = yes
			w.settle()
			w.expect("True AllComponentsReady", "open 10.0.0.7 b1 2026-11-16T12:00:00Z")
			if w.writes != 1 {
				t.Errorf("%d writes", w.writes)
			}
		})
	}
}

// An agent that begins after the deadline asks first.
func TestAPodThatWasNotProbedIsNotLate(t *testing.T) {
	w := newWorld(t, rule("network", components(byReach("path")), deadline(60, v1alpha1.DeadlineOpen)))
	w.pass(2 * time.Minute)
	w.settle()
	w.expect("absent", "")
	w.answers["10.0.0.7:9"] = podrule.Answer{Why: "no answer"}
	w.settle()
	w.expect("True DeadlineExceeded", "open 10.0.0.7 b1 2026-11-16T12:00:00Z")
}

// Who insists on a closed gate is not written against as fast as possible.
func TestGateThatAnotherWriterClosesIsNotRewrittenAtOnce(t *testing.T) {
	w := newWorld(t, rule("network"))
	w.setComponent("True")
	w.settle()
	for range 1000 {
		w.pass(10 * time.Millisecond)
		if w.condition(v1alpha1.DefaultGate).Status == "True" {
			w.set(corev1.PodCondition{Type: v1alpha1.DefaultGate, Status: "False", Reason: "Other", LastTransitionTime: metav1.NewTime(w.now)})
		}
		w.settle()
	}
	if w.writes != 2 {
		t.Errorf("%d writes in 10 s, want the first one and one more", w.writes)
	}
}

// A latch waits in the new sandbox of a pod whose gate was not closed.
func TestTheLatchOfAnOrphanInANewSandbox(t *testing.T) {
	for name, tc := range map[string]struct {
		after time.Duration
		does  v1alpha1.DeadlineAction
		want  string
	}{
		"is opened when the deadline is over": {time.Minute, v1alpha1.DeadlineOpen, "always AgentGone"},
		"not before":                          {time.Minute - time.Second, v1alpha1.DeadlineOpen, ""},
		"nor if that is only to be reported":  {time.Hour, v1alpha1.DeadlineReport, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rule("network", startHold, deadline(60, tc.does)))
			w.latch()
			w.setComponent("True")
			w.settle()
			w.pass(time.Hour)
			w.sandbox("10.0.0.8")
			w.pass(tc.after)
			w.subject.Node = podrule.Node{}
			patch := podrule.Orphan(w.rules, &w.subject, w.now).Patch
			switch {
			case patch == nil:
				if tc.want != "" {
					t.Error("nothing is written")
				}
			case patch.Key != tc.want || len(patch.Conditions) > 0:
				t.Errorf("it writes %+v", patch)
			}
		})
	}
}

// Not every kubelet reports sandboxes.
func TestAnOrphanOfAVirtualKubelet(t *testing.T) {
	w := newWorld(t, rule("network", deadline(60, v1alpha1.DeadlineOpen)))
	w.subject.Pod.Status.Conditions, w.subject.Pod.Status.StartTime = nil, &metav1.Time{Time: noon}
	w.pass(time.Minute)
	w.write(podrule.Orphan(w.rules, &w.subject, w.now).Patch)
	w.expect("True AgentGone", "always AgentGone")
}

// An account that fills the annotations of a pod cannot keep its gate closed.
func TestAPatchOfAPodThatTakesNoMoreAnnotations(t *testing.T) {
	refused := func(at ...string) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web", field.ErrorList{field.TooLong(field.NewPath(at[0], at[1:]...), "", 262144)})
	}
	full := refused("metadata", "annotations")
	open := []corev1.PodCondition{{Type: v1alpha1.DefaultGate, Status: "True"}}
	for name, tc := range map[string]struct {
		patch   podrule.Patch
		answers []error
		want    error
	}{
		"fits":               {podrule.Patch{Conditions: open, Key: "k"}, []error{nil}, nil},
		"fits without a key": {podrule.Patch{Conditions: open, Key: "k"}, []error{full, nil}, nil},
		"does not fit":       {podrule.Patch{Conditions: open, Key: "k"}, []error{full, full}, full},
		"is a key":           {podrule.Patch{Key: "k"}, []error{full}, full},
		"is refused":         {podrule.Patch{Conditions: open, Key: "k"}, []error{refused("spec")}, refused("spec")},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []string
			err := tc.patch.Send("u1", func(patch []byte) error {
				sent = append(sent, string(patch))
				return tc.answers[len(sent)-1]
			})
			if len(sent) != len(tc.answers) || err != nil && err.Error() != tc.want.Error() || (err == nil) != (tc.want == nil) {
				t.Fatalf("sent %q and got %v, want %v", sent, err, tc.want)
			}
			if again := len(sent) - 1; again > 0 && strings.Contains(sent[again], "annotations") {
				t.Errorf("the key is sent again: %s", sent[again])
			}
			if slices.ContainsFunc(sent, func(s string) bool { return !strings.Contains(s, `"uid":"u1"`) }) {
				t.Errorf("no UID in %q", sent)
			}
		})
	}
	if podrule.Missed(errors.New("other")) || podrule.Missed(full) {
		t.Error("it is not gone")
	}
	if !podrule.Full(full) || podrule.Full(refused("spec")) || podrule.Full(nil) {
		t.Error("only one of them is full")
	}
}

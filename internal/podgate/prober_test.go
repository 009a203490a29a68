package podgate

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/internal/core/podrule"
)

// trial is a prober with a component whose answer the test sets.
type trial struct {
	*prober
	mu      sync.Mutex
	says    podrule.Answer
	asked   int
	changes int
}

func try(t *testing.T, f func(*trial)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		tr := &trial{}
		tr.prober = newProber(func(context.Context, podrule.Probe) podrule.Answer {
			tr.mu.Lock()
			defer tr.mu.Unlock()
			tr.asked++
			return tr.says
		}, NewMetrics(prometheus.NewRegistry()), func(types.NamespacedName) {
			tr.mu.Lock()
			defer tr.mu.Unlock()
			tr.changes++
		})
		defer tr.stop()
		f(tr)
	})
}

func (tr *trial) say(answer podrule.Answer) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.says = answer
}

func sandboxed(ip string, since time.Time) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"},
		Status: corev1.PodStatus{PodIP: ip, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(since)}}},
	}
}

var question1 = []podrule.Probe{{Kind: podrule.File, Path: "/run/u1"}}

func (tr *trial) answer(pod *corev1.Pod) (podrule.Answer, bool) { return tr.answers(pod)(question1[0]) }

// A positive answer counts for one sandbox; the prober probes again for the next one.
func TestComponentResultIsResetWithNewSandbox(t *testing.T) {
	try(t, func(tr *trial) {
		first, second := sandboxed("10.0.0.7", time.Now()), sandboxed("10.0.0.7", time.Now().Add(time.Minute))
		tr.say(podrule.Answer{Yes: true})
		tr.want(first, question1)
		synctest.Wait()
		if answer, known := tr.answer(first); !known || !answer.Yes {
			t.Fatalf("it says %+v, %v", answer, known)
		}
		if _, known := tr.answer(second); known {
			t.Error("the yes is known of the next sandbox")
		}
		tr.want(first, nil)
		tr.want(first, question1)
		if _, known := tr.answer(first); known {
			t.Error("the yes is known though the question has ended")
		}
		tr.say(podrule.Answer{Why: "no such file"})
		tr.want(second, question1)
		synctest.Wait()
		if answer, known := tr.answer(second); !known || answer.Yes {
			t.Errorf("in the next sandbox it says %+v, %v", answer, known)
		}
	})
}

// The prober counts consecutive failures, and calls changed only for a change.
func TestFailedProbesAreCounted(t *testing.T) {
	try(t, func(tr *trial) {
		pod := sandboxed("10.0.0.7", time.Now())
		tr.say(podrule.Answer{Why: "no such file"})
		tr.want(pod, question1)
		synctest.Wait()
		if answer, _ := tr.answer(pod); answer.Noes != 1 {
			t.Errorf("after one question: %+v", answer)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if answer, _ := tr.answer(pod); answer.Noes != podrule.Refusals {
			t.Errorf("after a minute: %+v", answer)
		}
		if tr.asked < 50 || tr.asked > 80 || tr.changes != podrule.Refusals {
			t.Errorf("asked %d times in a minute, %d changes", tr.asked, tr.changes)
		}
	})
}

// The prober stops probing for a deleted pod.
func TestDeletedPodIsNotProbed(t *testing.T) {
	try(t, func(tr *trial) {
		pod := sandboxed("10.0.0.7", time.Now())
		tr.want(pod, question1)
		synctest.Wait()
		tr.forget(keyOf(pod))
		before := tr.asked
		time.Sleep(time.Minute)
		synctest.Wait()
		if tr.asked != before || len(tr.pods) > 0 {
			t.Errorf("asked %d times more, %d pods are remembered", tr.asked-before, len(tr.pods))
		}
	})
}

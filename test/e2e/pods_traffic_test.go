package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/e2e/lab"
)

// Scenario 12: a Service has two pods, a client calls it all the time, and the Deployment is scaled up, at last
// onto a node that joins meanwhile. The policy engine takes three seconds per new pod, and drops its packets
// until then. Without a rule, calls fail. With a rule, no packet is ever sent to an unprogrammed pod.
func TestServiceSendsNoTrafficToUnprogrammedPods(t *testing.T) {
	l := lab.Start(t)
	clients := l.Join(t, "n1")
	servers := l.Join(t, "n2", worker)
	l.InstallFlannel(t)
	installPods(t, l)
	l.EventuallyNodes(t, "ready", is(string(corev1.NodeReady), corev1.ConditionTrue), "n1", "n2")
	e := startEngine(t, l, "open", "gated", "client")
	e.guard(t, clients)
	e.guard(t, servers)
	l.Create(t, idle("client", "client", onNode("n1")))
	client := eventuallyPod(t, l, "client", "programmed", isProgrammed)
	l.Step(t, "two nodes have a network, and a slow policy engine")

	withoutARule(t, l, e, client)
	attended(t, l)
	applyPodRule(t, l, "gated", `  components: [{name: policy, podCondition: {type: `+programmed+`}}]
`, "gated")
	withARule(t, l, e, client)
}

func isProgrammed(pod *corev1.Pod) bool {
	return conditionOf(pod, programmed).Status == corev1.ConditionTrue
}

// withoutARule shows that the other scenario can fail.
func withoutARule(t *testing.T, l *lab.Lab, e *engine, client *corev1.Pod) {
	t.Helper()
	before := e.dropped(t)
	made := serve(t, l, "open", client)
	for size := 6; ; size += 4 {
		grow(t, l, "open", size, made)
		if _, failed, _ := made.sum(); len(failed) > 0 {
			break
		}
		if size > 20 { // a busy machine may start pods so slowly that they are programmed by then
			t.Error("no call failed without a rule: the scenario with one proves nothing here")
			break
		}
	}
	end(t, made)
	answered, failed, _ := made.sum()
	l.Step(t, fmt.Sprintf("without a rule: %d calls were answered, %d failed, e.g. %s; %d packets met a pod that was not programmed",
		answered, len(failed), first(failed), e.dropped(t)-before))
	l.Kubectl.Run(t, "delete", "deployment", "open")
}

func withARule(t *testing.T, l *lab.Lab, e *engine, client *corev1.Pod) {
	t.Helper()
	before, history := e.dropped(t), watchPods(t, l, "gated")
	made := serve(t, l, "gated", client)
	grow(t, l, "gated", 6, made)
	l.Step(t, "grown to 6 pods on a node")
	e.guard(t, l.Join(t, "n3", worker))
	grow(t, l, "gated", 12, made)
	end(t, made)
	answered, failed, _ := made.sum()
	dropped := e.dropped(t) - before
	l.Step(t, fmt.Sprintf("with a rule: %d calls were answered, %d failed; %d packets met a pod that was not programmed", answered, len(failed), dropped))
	if len(failed) > 0 || dropped > 0 {
		t.Errorf("%d calls failed, e.g. %s, and %d packets were dropped: there must be none", len(failed), first(failed), dropped)
	}
	if !slices.ContainsFunc(podsOf(t, l, metav1.NamespaceDefault, "gated"), func(pod corev1.Pod) bool { return pod.Spec.NodeName == "n3" }) {
		t.Error("no pod is on the node that joined: the test shows nothing")
	}
	for _, pod := range history.all() {
		if isReady(pod) && !isProgrammed(pod) {
			t.Errorf("%s was ready before it was programmed", pod.Name)
		}
	}
}

// serve starts two pods and a Service, and calls it as soon as both are programmed.
func serve(t *testing.T, l *lab.Lab, app string, client *corev1.Pod) *calls {
	t.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: app, Namespace: metav1.NamespaceDefault},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": app}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	l.Create(t, service)
	workload(t, l, app, 2, workers)
	testenv.Eventually(t, "two pods of "+app+" that are programmed", func(context.Context) error {
		n := 0
		for _, pod := range podsOf(t, l, metav1.NamespaceDefault, app) {
			if isReady(&pod) && isProgrammed(&pod) {
				n++
			}
		}
		if n != 2 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	made := call(t, l, client, service.Spec.ClusterIP+":80")
	answers(t, made, 2)
	return made
}

// grow scales the app, and waits until every one of its pods has answered a call.
func grow(t *testing.T, l *lab.Lab, app string, size int, made *calls) {
	t.Helper()
	l.Kubectl.Run(t, "scale", "deployment/"+app, "--replicas="+strconv.Itoa(size))
	working(t, l, app, size)
	answers(t, made, size)
}

func answers(t *testing.T, made *calls, pods int) {
	t.Helper()
	testenv.Eventually(t, fmt.Sprintf("answers of %d pods", pods), func(context.Context) error {
		if _, failed, by := made.sum(); len(by) < pods {
			return fmt.Errorf("answers of %s; %d calls failed, e.g. %s", strings.Join(by, " "), len(failed), first(failed))
		}
		return nil
	})
}

func end(t *testing.T, made *calls) {
	t.Helper()
	if err := made.stop(); err != nil {
		t.Fatal(err)
	}
}

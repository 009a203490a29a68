package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/e2e/lab"
)

// Scenario 6: every node is held and has no network. The manager and reporters run there nevertheless;
// pods that do not tolerate the taint stay pending, and their conditions show why.
func TestTheManagerStartsWhereEveryNodeIsHeld(t *testing.T) {
	l := lab.Start(t)
	l.JoinThree(t, worker, "--register-with-taints="+flannelTaint+"=pending:NoSchedule,example.com/unrelated=:NoExecute")
	l.EventuallyNodes(t, "held", held(flannelTaint), "n1", "n2", "n3")
	install(t, l)
	workload(t, l, "web", 3, nil)
	managed(t, l)
	l.Kubectl.Run(t, "apply", "-f", example("flannel-readiness/network-readiness-rule.yaml"))
	applyReporter(t, l)
	l.Kubectl.Run(t, "rollout", "status", "daemonset/flannel-reporter", "-n", "kube-system", "--timeout=90s")
	l.EventuallyNodes(t, "reported", is(flannelCondition, corev1.ConditionFalse), "n1", "n2", "n3")
	testenv.Eventually(t, "pods that show why they are pending", func(context.Context) error {
		for _, pod := range podsOf(t, l, metav1.NamespaceDefault, "web") {
			if pod.Spec.NodeName != "" {
				t.Errorf("%s was scheduled to %s, which is held", pod.Name, pod.Spec.NodeName)
			}
			if len(pod.Status.Conditions) == 0 || !strings.Contains(pod.Status.Conditions[0].Message, "untolerated taint") {
				return fmt.Errorf("%s: %+v", pod.Name, pod.Status.Conditions)
			}
		}
		return nil
	})
}

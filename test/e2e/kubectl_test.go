package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/e2e/lab"
)

// Scenario 8 without Helm: install.yaml and uninstall.yaml, as in docs/how-to/uninstall.md.
func TestWithKubectl(t *testing.T) {
	l := lab.Start(t)
	l.JoinThree(t, "--node-labels=example.com/gpu=yes")
	l.Kubectl.Run(t, "apply", "--server-side", "-f", dist("install.yaml"))
	managed(t, l)
	l.Kubectl.Run(t, "apply", "-f", testdata("waiting-rule.yaml"))
	covered(t, l, "waiting")
	l.EventuallyNodes(t, "held", held(waitingTaint), "n1", "n2", "n3")

	l.Kubectl.Run(t, "apply", "-f", dist("uninstall.yaml"))
	l.Kubectl.Run(t, "wait", "-n", namespace, "--for=condition=Complete", "job/readygate-cleanup", "--timeout=3m")
	if logs := l.Kubectl.Run(t, "logs", "-n", namespace, "job/readygate-cleanup"); !strings.Contains(logs, "Stays") {
		t.Errorf("the cleanup does not log what stays:\n%s", logs)
	}
	l.Kubectl.Run(t, "delete", "-l", "app.kubernetes.io/part-of=readygate", "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings")
	l.Kubectl.Run(t, "delete", "-l", "app.kubernetes.io/part-of=readygate", "mutatingadmissionpolicies,mutatingadmissionpolicybindings")
	l.Kubectl.Run(t, "delete", "namespace", namespace)
	nothingIsLeft(t, l, "customresourcedefinition.apiextensions.k8s.io/"+v1alpha1.CRDName, "customresourcedefinition.apiextensions.k8s.io/"+podv1alpha1.CRDName)
	l.EventuallyNodes(t, "free", released(waitingTaint), "n1", "n2", "n3")
	for _, rule := range rules(t, l) {
		if len(rule.Finalizers) > 0 {
			t.Errorf("rule %s has finalizers %v", rule.Name, rule.Finalizers)
		}
	}
}

// dist returns the path of a file that make writes for users.
func dist(file string) string { return filepath.Join(testenv.Root(), "dist", file) }

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/e2e/lab"
)

// Scenario 8: uninstalling removes everything except what is documented to stay. Foreign taints and annotations stay,
// pods run on the nodes, and installing again works. First with crds.keep, then without.
func TestUninstall(t *testing.T) {
	l := startWithChart(t)
	l.Kubectl.Run(t, "taint", "node", "n1", "example.com/mine=yes:PreferNoSchedule")
	l.Kubectl.Run(t, "annotate", "node", "n1", "example.com/mine=yes")

	l.Helm(t, "uninstall", release, "--namespace", namespace)
	l.Step(t, "uninstalled; CRD and rules are kept")
	nothingIsLeft(t, l, "customresourcedefinition.apiextensions.k8s.io/"+v1alpha1.CRDName, "customresourcedefinition.apiextensions.k8s.io/"+podv1alpha1.CRDName)
	for _, rule := range rules(t, l) {
		if len(rule.Finalizers) > 0 || len(rule.Status.Conditions) > 0 {
			t.Errorf("rule %s has finalizers %v and conditions %v", rule.Name, rule.Finalizers, rule.Status.Conditions)
		}
	}
	var node corev1.Node
	l.Get(t, &node, "", "n1")
	if !completed(t, l)(&node) {
		t.Error("n1 lost its completion record, which the next controller needs")
	}
	if node.Annotations["example.com/mine"] != "yes" || !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "example.com/mine" }) {
		t.Errorf("n1 lost a foreign taint or annotation: %v %s", node.Annotations, lab.Describe(&node))
	}
	workload(t, l, "on-n3", 1, map[string]string{corev1.LabelHostname: "n3"})
	working(t, l, "on-n3", 1)

	history := l.Watch(t)
	install(t, l, "--values", testdata("flannel-values.yaml"), "--set", "crds.keep=false")
	l.EventuallyNode(t, "n3", "held again", held(waitingTaint))
	covered(t, l, flannelRule)
	history.Always(t, "n1", "in use", completed(t, l))
	l.Step(t, "installed again: the rules are enforced as before")

	l.Helm(t, "uninstall", release, "--namespace", namespace)
	l.Step(t, "uninstalled; nothing is kept")
	testenv.Eventually(t, "the CRD to go", func(ctx context.Context) error {
		if out, err := l.Kubectl.Try(ctx, "get", "crd", v1alpha1.CRDName, "-o", "name", "--ignore-not-found"); err != nil || out != "" {
			return fmt.Errorf("%s %w", out, err)
		}
		return nil
	})
	nothingIsLeft(t, l)
	l.Get(t, &node, "", "n1")
	for key := range node.Annotations {
		if strings.HasPrefix(key, v1alpha1.CompletedPrefix) {
			t.Errorf("n1 still has %s", key)
		}
	}

	install(t, l)
	managed(t, l)
	l.Kubectl.Run(t, "apply", "-f", testdata("waiting-rule.yaml"))
	l.EventuallyNode(t, "n3", "held by a new rule", held(waitingTaint))
}

func rules(t *testing.T, l *lab.Lab) []v1alpha1.NodeReadinessRule {
	t.Helper()
	var list v1alpha1.NodeReadinessRuleList
	if err := l.Client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) == 0 {
		t.Error("there are no rules")
	}
	return list.Items
}

// nothingIsLeft fails if any object except the promised ones still has the label of Readygate, or if a node
// still has its taints, annotations or conditions.
func nothingIsLeft(t *testing.T, l *lab.Lab, promised ...string) {
	t.Helper()
	kinds := strings.Fields(l.Kubectl.Run(t, "api-resources", "--verbs=list", "-o", "name"))
	testenv.Eventually(t, "nothing to be left", func(ctx context.Context) error {
		out, err := l.Kubectl.Try(ctx, "get", strings.Join(kinds, ","), "-A", "-l", "app.kubernetes.io/part-of=readygate", "-o", "name")
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(strings.Fields(out), func(name string) bool { return slices.Contains(promised, name) })
		if len(left) > 0 {
			return fmt.Errorf("still there: %v", left)
		}
		return nil
	})
	for _, kind := range []string{"pods", "leases", "configmaps", "secrets", "serviceaccounts"} {
		names := strings.Fields(l.Kubectl.Run(t, "get", kind, "-n", namespace, "-o", "name"))
		names = slices.DeleteFunc(names, func(name string) bool {
			return name == "configmap/kube-root-ca.crt" || name == "serviceaccount/default"
		})
		if len(names) > 0 {
			t.Errorf("still in %s: %v", namespace, names)
		}
	}
	var nodes corev1.NodeList
	if err := l.Client.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		for _, taint := range node.Spec.Taints {
			if strings.HasPrefix(taint.Key, "readiness.k8s.io/") {
				t.Errorf("%s still has the taint %s", node.Name, taint.Key)
			}
		}
		for key := range node.Annotations {
			if strings.HasPrefix(key, "readygate.dev/") {
				t.Errorf("%s still has the annotation %s", node.Name, key)
			}
		}
		for _, c := range node.Status.Conditions {
			if c.Type == flannelCondition {
				t.Errorf("%s still has the condition %s", node.Name, c.Type)
			}
		}
	}
}

// Scenario 8, between controllers: a cluster has the CRD, rules, taints and completion records of another
// controller of this API, which was stopped. Readygate takes over and hands back without a changed manifest,
// and no node is wrongly held or released.
func TestTakingOverAndHandingBack(t *testing.T) {
	l := lab.Start(t)
	l.JoinThree(t, worker, "--node-labels=example.com/pool=workers,example.com/gpu=yes")
	l.Kubectl.Run(t, "apply", "-f", testdata("other-crd.yaml"))
	l.Kubectl.Run(t, "wait", "--for=condition=Established", "crd/"+v1alpha1.CRDName)
	l.Kubectl.Run(t, "create", "-f", example("flannel-readiness/network-readiness-rule.yaml"), "-f", testdata("waiting-rule.yaml"))
	before := leftByAnother(t, l)
	history := l.Watch(t)

	l.Kubectl.Run(t, "apply", "-f", testdata("other-controller.yaml"))
	dir, blocks := checkout(t), testenv.PageCommands(t, "docs/how-to/migrate.md", "migrate")
	last := len(blocks) - 1
	for _, block := range blocks[:last] {
		runBlock(t, l, dir, block)
	}
	for _, name := range []string{flannelRule, "waiting"} {
		l.EventuallyRule(t, name, "enforced", testenv.Is(v1alpha1.ConditionEnforced, metav1.ConditionTrue, v1alpha1.ReasonEnforced))
	}
	l.SetCondition(t, "n2", flannelCondition, corev1.ConditionTrue)
	l.EventuallyNode(t, "n2", "released by Readygate", completed(t, l))
	history.Always(t, "n1", "in use", completed(t, l))
	history.Always(t, "n3", "held", held(flannelTaint))
	l.Step(t, "taken over")

	runBlock(t, l, dir, blocks[last])
	nothingOfOursOnRules(t, l, before)
	l.Kubectl.Run(t, "apply", "-f", testdata("other-crd.yaml"), "--server-side", "--force-conflicts")
	for _, name := range []string{"n1", "n2"} {
		var node corev1.Node
		l.Get(t, &node, "", name)
		if !completed(t, l)(&node) {
			t.Errorf("%s is not completed for the next controller: %v", name, node.Annotations)
		}
	}
	nothingOfOursOnRules(t, l, before)
	l.Step(t, "handed back")
}

// leftByAnother creates the state that another controller leaves: n1 is completed, n2 and n3 are held. It
// returns the rules.
func leftByAnother(t *testing.T, l *lab.Lab) map[string]v1alpha1.NodeReadinessRule {
	t.Helper()
	left := map[string]v1alpha1.NodeReadinessRule{}
	for _, rule := range rules(t, l) {
		l.Kubectl.Run(t, "patch", "nodereadinessrule", rule.Name, "--type=merge", "-p", `{"metadata":{"finalizers":["`+v1alpha1.Finalizer+`"]}}`)
		l.Kubectl.Run(t, "patch", "nodereadinessrule", rule.Name, "--subresource=status", "--type=merge", "-p",
			`{"status":{"observedGeneration":1,"appliedNodes":["n1","n2","n3"],"nodeEvaluations":[{"nodeName":"n1","taintStatus":"Absent","conditionResults":[]}]}}`)
		if rule.Name == flannelRule {
			l.Kubectl.Run(t, "annotate", "node", "n1", v1alpha1.CompletedPrefix+string(rule.UID)+`={"rule-name":"`+rule.Name+`"}`)
			l.Kubectl.Run(t, "taint", "node", "n2", "n3", flannelTaint+"=pending:NoSchedule")
		} else {
			l.Kubectl.Run(t, "taint", "node", "n1", "n2", "n3", waitingTaint+"=pending:NoSchedule")
		}
		left[rule.Name] = rule
	}
	return left
}

// nothingOfOursOnRules: every rule is the same object with the same spec, without finalizers.
func nothingOfOursOnRules(t *testing.T, l *lab.Lab, before map[string]v1alpha1.NodeReadinessRule) {
	t.Helper()
	for name, was := range before {
		var is v1alpha1.NodeReadinessRule
		if err := l.Client.Get(t.Context(), client.ObjectKey{Name: name}, &is); apierrors.IsNotFound(err) {
			t.Errorf("rule %s is gone", name)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if is.UID != was.UID || is.Generation != was.Generation || len(is.Finalizers) > 0 {
			t.Errorf("rule %s has UID %s (was %s), generation %d (was %d), finalizers %v", name, is.UID, was.UID, is.Generation, was.Generation, is.Finalizers)
		}
	}
}

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// install installs the policies as an administrator does.
func install(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	if err := c.InstallPolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// uninstall deletes policies and bindings.
func uninstall(t *testing.T, c *testenv.Cluster, objs ...runtime.Object) {
	t.Helper()
	for _, obj := range objs {
		if err := c.Client.Delete(t.Context(), obj.(client.Object)); err != nil {
			t.Fatal(err)
		}
	}
}

// joins are nodes of a pool that a kubelet registers continuously. The test deletes each at once.
type joins struct {
	mu      sync.Mutex
	held    []bool // whether each was created with the taint, in the order of their creation
	refused error  // the first rejected registration
}

// joinAllTheTime registers nodes until the test ends. The API server must reject none of them.
func joinAllTheTime(t *testing.T, c *testenv.Cluster, rule *v1alpha1.NodeReadinessRule) *joins {
	t.Helper()
	const name = "joining"
	j, api, done := &joins{}, kubelet(t, c, name), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		<-done
		if j.refused != nil {
			t.Errorf("a kubelet could not register its node: %v", j.refused)
		}
	})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			node := testenv.Node(name, testenv.Pool(rule.Name))
			err := api.Create(ctx, node)
			j.add(testenv.HasTaint(node, rule.Spec.Taint.Key), err)
			untilDone(ctx, func() error { return client.IgnoreNotFound(c.Client.Delete(ctx, node)) })
			pause(ctx, 50*time.Millisecond)
		}
	}()
	return j
}

// add records a result. It ignores lost responses, and rejections by an API server that is not ready yet.
func (j *joins) add(held bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case err == nil:
		j.held = append(j.held, held)
	case j.refused == nil && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) && !strings.Contains(err.Error(), "not yet ready"):
		j.refused = err
	}
}

// count returns the number of nodes that have joined.
func (j *joins) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.held)
}

// eventually waits until new nodes are created with the taint, or without it.
func (j *joins) eventually(t *testing.T, held bool) {
	t.Helper()
	from := j.count() + 1 // one registration may be in flight
	testenv.Eventually(t, fmt.Sprintf("nodes created with the taint: %v", held), func(context.Context) error {
		j.mu.Lock()
		defer j.mu.Unlock()
		if len(j.held) <= from || j.held[len(j.held)-1] != held {
			return fmt.Errorf("%d nodes have joined since", len(j.held)-from)
		}
		return nil
	})
}

// free reports whether all nodes that joined after this count were created without the taint.
func (j *joins) free(after int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !slices.Contains(j.held[after:], true)
}

// warnings collects the warnings of the API server.
type warnings []string

// HandleWarningHeader is called for each warning.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) { *w = append(*w, text) }

// deleteWarned deletes the object and returns the API server's warnings.
func deleteWarned(ctx context.Context, c *testenv.Cluster, obj client.Object, options ...client.DeleteOption) (warnings, error) {
	var w warnings
	config := rest.CopyConfig(c.Config)
	config.WarningHandler = &w
	admin, err := client.New(config, client.Options{})
	if err != nil {
		return nil, err
	}
	return w, admin.Delete(ctx, obj, options...)
}

// parts are the objects whose deletion removes the manager.
func parts() map[string]client.Object {
	return map[string]client.Object{
		"the Deployment": &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: admission.ManagerNamespace, Name: admission.ManagerAccount}},
		"the namespace":  &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: admission.ManagerNamespace}},
		"the CRD":        &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.CRDName}},
	}
}

// deploy creates a Deployment of this name. Its pods are not started.
func deploy(t *testing.T, c *testenv.Cluster, namespace, name string) *appsv1.Deployment {
	t.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "manager"}}},
			},
		},
	}
	c.Create(t, d)
	return d
}

const warning = "Validation failed for ValidatingAdmissionPolicy 'readygate-removal' with binding 'readygate-removal': " +
	"rules exist: without readygate-manager, held nodes stay held and new nodes are still created with the taint. " +
	"First run: kubectl delete nrr --all. If the manager is already deleted: kubectl delete mutatingadmissionpolicybinding readygate-taint-new-nodes"

// The API server returns one warning for the deletion of a part that enforced rules need. It returns none for other
// objects, or if no rule is enforced.
func TestRemovingPartsOfReadygateIsAWarning(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	install(t, c)
	deploy(t, c, admission.ManagerNamespace, admission.ManagerAccount)
	others := []client.Object{
		deploy(t, c, admission.ManagerNamespace, "other"), deploy(t, c, metav1.NamespaceDefault, admission.ManagerAccount),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceNodeLease}},
	}
	want := func(what string, obj client.Object, want ...string) {
		t.Helper()
		got, err := deleteWarned(t.Context(), c, obj, client.DryRunAll)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("deleting %s: %v, warned %q, want %q", what, err, got, want)
		}
	}
	for name, part := range parts() {
		want(name+" without rules", part)
	}
	enforced := func(r *v1alpha1.NodeReadinessRule) { r.Finalizers = []string{v1alpha1.Finalizer} }
	c.Create(t, testenv.Rule("first", enforced))
	c.Create(t, testenv.Rule("second", enforced))
	c.Create(t, testenv.Rule("preview", testenv.DryRun, enforced))
	c.Create(t, testenv.Rule("no-finalizer"))
	eventuallyWarned(t, c)
	for name, part := range parts() {
		want(name, part, warning)
	}
	for _, other := range others {
		want(other.GetNamespace()+"/"+other.GetName(), other)
	}
	k := c.Kubectl(t)
	out, err := k.Output(t.Context(), "delete", "deployment", "-n", admission.ManagerNamespace, admission.ManagerAccount)
	if shown := "Warning: " + warning + "\n"; err != nil || !strings.HasPrefix(out, shown) {
		t.Errorf("kubectl prints %q (%v), want %q", out, err, shown)
	}
}

// eventuallyWarned waits until the API server warns: it reads the rules only some time after it has received the policy.
func eventuallyWarned(t *testing.T, c *testenv.Cluster) {
	t.Helper()
	testenv.Eventually(t, "a warning", func(ctx context.Context) error {
		got, err := deleteWarned(ctx, c, parts()["the CRD"], client.DryRunAll)
		if err != nil || len(got) == 0 {
			return fmt.Errorf("warned %v, %w", got, err)
		}
		return nil
	})
}

// fleet is a cluster with Readygate, a rule, a held node, and nodes that join.
type fleet struct {
	*testing.T
	c       *testenv.Cluster
	k       *testenv.Kubectl
	manager *testenv.Process
	rule    *v1alpha1.NodeReadinessRule
	joins   *joins
	warned  warnings // so far
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{T: t, c: testenv.StartCluster(t), rule: testenv.Rule("network")}
	f.c.NeedMutatingPolicies(t)
	install(t, f.c)
	f.k = f.c.Kubectl(t)
	deploy(t, f.c, admission.ManagerNamespace, admission.ManagerAccount)
	f.manager = f.c.StartProcess(t, testenv.ManagerUser, "--policy-settle-time=2s")
	createCovered(t, f.c, f.rule)
	f.c.Create(t, testenv.Node("old", testenv.Pool(f.rule.Name)))
	f.joins = joinAllTheTime(t, f.c, f.rule)
	f.joins.eventually(t, true)
	eventuallyWarned(t, f.c)
	return f
}

func (f *fleet) remove(part string) {
	f.Helper()
	warned, err := deleteWarned(f.Context(), f.c, parts()[part])
	if err != nil {
		f.Fatalf("deleting %s: %v", part, err)
	}
	f.warned = append(f.warned, warned...)
}

func (f *fleet) removeManager() {
	f.Helper()
	f.remove("the Deployment")
	if code := f.manager.Terminate(); code != 0 {
		f.Errorf("the manager ended with %d:\n%s", code, f.manager.Log())
	}
	f.manager = nil
}

// removeCRD deletes the CRD and waits until it is deleted. The manager removes the finalizers of rules. If no manager
// runs, the documented command does.
func (f *fleet) removeCRD() {
	f.Helper()
	f.remove("the CRD")
	if f.manager == nil {
		f.c.EventuallyRule(f.T, f.rule.Name, "waiting for a manager", func(r *v1alpha1.NodeReadinessRule) bool { return !r.DeletionTimestamp.IsZero() })
		removeFinalizer(f.T, f.k, f.rule)
	}
	gone(f.T, f.c, parts()["the CRD"])
}

// removeFinalizer runs the documented command for a deleted rule if no manager runs.
func removeFinalizer(t *testing.T, k *testenv.Kubectl, rule *v1alpha1.NodeReadinessRule) {
	t.Helper()
	const merge = `{"metadata":{"finalizers":null}}`
	documented(t, "operations/troubleshooting.md", "`kubectl patch nrr NAME --type=merge -p '"+merge+"'`")
	k.Run(t, "patch", "nrr", rule.Name, "--type=merge", "-p", merge)
}

// documented checks that a page contains the text.
func documented(t *testing.T, page, text string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), text) {
		t.Errorf("docs/%s does not contain %s", page, text)
	}
}

func (f *fleet) removePolicies() {
	f.Helper()
	uninstall(f.T, f.c, admission.Installed()...)
}

// restart restarts the API server, which then reads what is left from etcd.
func (f *fleet) restart() {
	f.Helper()
	if err := errors.Join(f.c.KillAPIServer(), f.c.StartAPIServer(f.Context())); err != nil {
		f.Fatal(err)
	}
}

// clean reports whether nothing of Readygate is left on the node.
func clean(node *corev1.Node) bool {
	return len(node.Annotations) == 0 && !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return strings.HasPrefix(taint.Key, "readiness.k8s.io/")
	})
}

// In any order of removal, nodes can always register. While nodes are created with the taint, a manager releases them,
// or the API server has warned. At the end nodes are created without the taint.
func TestReadygateCanBeRemovedInAnyOrder(t *testing.T) {
	t.Parallel()
	const crd, manager, policies = "CRD", "manager", "policies"
	for _, order := range [][]string{
		{crd, manager, policies}, {crd, policies, manager}, {manager, crd, policies},
		{manager, policies, crd}, {policies, crd, manager}, {policies, manager, crd},
	} {
		t.Run(strings.Join(order, ", "), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			remove := map[string]func(){crd: f.removeCRD, manager: f.removeManager, policies: f.removePolicies}
			createdHeld := true
			for _, part := range order {
				remove[part]()
				if part == crd && f.manager != nil {
					defer f.noNodeIsHeldFromNowOn()()
					f.restart() // the new API server has no CRD
				}
				createdHeld = createdHeld && part != policies && (part != crd || f.manager == nil)
				f.joins.eventually(t, createdHeld)
				if createdHeld && f.manager == nil && !slices.Contains(f.warned, warning) {
					t.Errorf("no manager releases new nodes, and the API server did not warn: %q", f.warned)
				}
			}
		})
	}
}

// noNodeIsHeldFromNowOn checks that the old node is clean, and, when the returned function is
// called, that no node was created with the taint since.
func (f *fleet) noNodeIsHeldFromNowOn() func() {
	f.Helper()
	f.c.EventuallyNode(f.T, "old", "clean", clean)
	last := f.joins.count()
	return func() {
		f.Helper()
		if !f.joins.free(last) {
			f.Error("a node was created with the taint after the CRD was deleted")
		}
	}
}

// The manager is deleted, and new nodes are created with the taint. The command in the warning, which the documentation
// repeats, stops this.
func TestTheRemovalWarningNamesACommandThatWorks(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.removeManager()
	f.joins.eventually(t, true)
	command := regexp.MustCompile(`If the manager is already deleted: (kubectl [a-z -]+)$`).FindStringSubmatch(strings.Join(f.warned, "\n"))
	if command == nil {
		t.Fatalf("no command in %q", f.warned)
	}
	documented(t, "operations/troubleshooting.md", "`"+command[1]+"`")
	f.k.Run(t, strings.Fields(command[1])[1:]...)
	f.joins.eventually(t, false)
	last := f.joins.count()
	f.restart()
	f.joins.eventually(t, false)
	f.removeCRD()
	f.joins.eventually(t, false)
	if !f.joins.free(last) {
		t.Error("a node was created with the taint after the command")
	}
}

// Without the policies the manager enforces rules, rules report what is missing, and everything can be removed.
func TestTheManagerWorksWithoutPolicies(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	uncovered := func(reason string) func(*v1alpha1.NodeReadinessRule) bool {
		return testenv.Is(v1alpha1.ConditionTaintedAtCreation, metav1.ConditionFalse, reason)
	}
	uninstall(t, f.c, admission.TaintNewNodesBinding())
	f.c.EventuallyRule(t, f.rule.Name, "without binding", uncovered(v1alpha1.ReasonBindingMissing))
	uninstall(t, f.c, admission.TaintNewNodesPolicy())
	f.c.EventuallyRule(t, f.rule.Name, "without policy", uncovered(v1alpha1.ReasonPolicyMissing))
	f.joins.eventually(t, false)

	f.c.EventuallyNode(t, "old", "still held", held(f.rule))
	f.c.Create(t, testenv.Node("new", testenv.Pool(f.rule.Name)))
	f.c.EventuallyNode(t, "new", "held by the manager", held(f.rule))
	f.c.SetCondition(t, "new", testenv.Condition, corev1.ConditionTrue)
	f.c.EventuallyNode(t, "new", "released", free(f.rule))

	f.k.Run(t, "delete", "nrr", "--all", "--timeout=90s")
	f.c.EventuallyNode(t, "old", "clean", clean)
	f.c.EventuallyNode(t, "new", "clean", clean)
	f.removeCRD()
	f.removeManager()
	if len(f.warned) > 0 {
		t.Errorf("warnings %q, want none without a rule", f.warned)
	}
}

// The CRD was removed by force while no manager ran. Nodes can register, but are created with the taint. A new manager
// exits with an error that contains the next steps.
func TestAManagerWithoutItsCRDReportsHowToReleaseNodes(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.removeManager()
	f.removeCRD()
	f.joins.eventually(t, true)
	late := f.c.StartProcess(t, testenv.ManagerUser)
	<-late.Done()
	for _, words := range []string{"install the CRD " + v1alpha1.CRDName, "if Readygate is being removed", "kubectl delete mutatingadmissionpolicybinding readygate-taint-new-nodes"} {
		if !strings.Contains(late.Log(), words) {
			t.Errorf("the log of the manager does not contain %q:\n%s", words, late.Log())
		}
	}
}

// The CRD was removed by force, and then a running manager starts to lead. It finds no rules, releases the nodes that they
// held, and stops tainting new nodes.
func TestAManagerThatLeadsAfterTheCRDWentCleansUp(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	install(t, c)
	leader := c.StartProcess(t, testenv.ManagerUser, elect...)
	rule := testenv.Rule("network")
	createCovered(t, c, rule)
	c.Create(t, testenv.Node("old", testenv.Pool(rule.Name)))
	joins := joinAllTheTime(t, c, rule)
	joins.eventually(t, true)
	next := c.StartProcess(t, testenv.SecondManagerUser, elect...)
	ready(t, next)
	leader.Kill()
	if err := c.Client.Delete(t.Context(), parts()["the CRD"]); err != nil {
		t.Fatal(err)
	}
	removeFinalizer(t, c.Kubectl(t), rule)
	gone(t, c, parts()["the CRD"])

	joins.eventually(t, false)
	c.EventuallyNode(t, "old", "clean", clean)
}

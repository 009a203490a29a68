package chart_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/testenv"
)

// build is a version of Readygate: its chart, and the binary of its manager.
type build struct{ chart, manager string }

// builds returns the builds of the previous commit and of this one.
func builds(t *testing.T) (previous, current build) {
	t.Helper()
	run := func(dir, command string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c", command)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	cmd := exec.CommandContext(t.Context(), "git", "rev-parse", "--verify", "HEAD^")
	cmd.Dir = testenv.Root()
	commit, err := cmd.Output()
	if err != nil {
		t.Skip("there is no previous commit here: this is not a Git repository, or a shallow clone")
	}
	dir := t.TempDir()
	run(testenv.Root(), fmt.Sprintf("git archive %s | tar -x -C %s", strings.TrimSpace(string(commit)), dir))
	binaries := t.TempDir()
	for name, root := range map[string]string{"previous": dir, "current": testenv.Root()} {
		run(root, fmt.Sprintf("CGO_ENABLED=0 go build -o %s ./cmd/readygate-manager", filepath.Join(binaries, name)))
	}
	return build{filepath.Join(dir, "charts", "readygate"), filepath.Join(binaries, "previous")}, build{chartDir(), filepath.Join(binaries, "current")}
}

// start starts the manager, as a replica of the release.
func (b build) start(t *testing.T, c *testenv.Cluster) *controlplane.Process {
	t.Helper()
	config, err := c.ControlPlane.Config(testenv.ManagerUser)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, config); err != nil {
		t.Fatal(err)
	}
	p, err := controlplane.StartProcess(exec.Command(b.manager, "--kubeconfig", kubeconfig, "--leader-elect", "--leader-election-namespace", namespace, //nolint:gosec // of the project
		"--latch-image", "registry.example.com/readygate-podgate:test", "--health-probe-bind-address=0", "--metrics-bind-address=0"), filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", b.manager, p.Log())
		}
	})
	return p
}

// TestUpgradeFromThePreviousBuildAndBack: an upgrade of the release and a rollback, while nodes are held and pods wait by
// rules in every mode. Nothing is released early. When everything is ready, no taint, record or closed gate is left.
func TestUpgradeFromThePreviousBuildAndBack(t *testing.T) {
	t.Parallel()
	previous, current := builds(t)
	c := emptyCluster(t)
	h := helmOf(t, c, "helm")
	h.chart = previous.chart
	h.run(t, "install", ci(t, "podgate"))
	manager := previous.start(t, c)
	s := newHolds(t, c)
	s.follow(t)

	h.chart = current.chart
	h.run(t, "upgrade", ci(t, "podgate"))
	s.replace(t, manager)
	manager = current.start(t, c)
	s.wantWorking(t, "upgraded")

	h.run(t, "rollback", "", append(rollbackFlags["helm"], "1")...)
	s.replace(t, manager)
	previous.start(t, c)
	s.wantWorking(t, "back")
	s.release(t)
}

// holds are nodes that rules of every mode hold, and pods that wait.
type holds struct {
	*testenv.Cluster
	rules []*v1alpha1.NodeReadinessRule
	pods  *podv1alpha1.PodReadinessRule
	// held are the taints of nodes that no manager may remove yet.
	mu   sync.Mutex
	held map[string]string
}

func newHolds(t *testing.T, c *testenv.Cluster) *holds {
	t.Helper()
	s := &holds{Cluster: c, held: map[string]string{}, pods: podRule("gated")}
	s.pods.Spec.PodSelector = &podv1alpha1.LabelSelector{MatchLabels: map[string]podv1alpha1.LabelValue{"app": "gated"}}
	for name, change := range map[string]func(*v1alpha1.NodeReadinessRule){
		"continuous": func(*v1alpha1.NodeReadinessRule) {},
		"once":       testenv.BootstrapOnly,
		"evicts":     func(r *v1alpha1.NodeReadinessRule) { r.Spec.Taint.Effect = corev1.TaintEffectNoExecute },
		"limited":    func(r *v1alpha1.NodeReadinessRule) { r.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(5)) },
		"preview":    testenv.DryRun,
	} {
		rule := testenv.Rule(name, change)
		s.rules = append(s.rules, rule)
		s.Create(t, rule)
		if name == "preview" {
			continue
		}
		c.EventuallyCovered(t, name)
		s.hold(t, rule)
	}
	once := testenv.Node("completed", testenv.Pool("once"))
	c.CreateNode(t, once, corev1.ConditionTrue)
	c.EventuallyNode(t, once.Name, "completed", func(n *corev1.Node) bool {
		return len(n.Annotations) > 0 && !testenv.HasTaint(n, testenv.TaintKey("once"))
	})
	c.SetCondition(t, once.Name, testenv.Condition, corev1.ConditionFalse)

	s.Create(t, s.pods)
	testenv.Eventually(t, "the first rule for pods to be reconciled", func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(s.pods), s.pods); err != nil {
			return err
		}
		if len(s.pods.Status.Conditions) == 0 {
			return fmt.Errorf("status %+v", s.pods.Status)
		}
		return nil
	})
	s.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "default"}})
	// As in a pod template: the API server may add no gates.
	s.Create(t, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "gated", Labels: map[string]string{"app": "gated"}, Annotations: map[string]string{podv1alpha1.GatesAnnotation: podv1alpha1.DefaultGate}},
		Spec:       corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: podv1alpha1.DefaultGate}}, Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	})
	return s
}

// hold creates a node of the rule that no component has reported, and waits until it is held.
func (s *holds) hold(t *testing.T, rule *v1alpha1.NodeReadinessRule) {
	t.Helper()
	name := fmt.Sprintf("held-%d", len(s.held))
	s.CreateNode(t, testenv.Node(name, testenv.Pool(rule.Name)), corev1.ConditionFalse)
	s.EventuallyNode(t, name, "held", func(n *corev1.Node) bool { return testenv.HasTaint(n, rule.Spec.Taint.Key) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[name] = rule.Spec.Taint.Key
}

// follow reports an error for every node that is released early, for every node that is held again after it completed,
// and for every gate that opens, until release.
func (s *holds) follow(t *testing.T) {
	t.Helper()
	nodes, err := s.Client.Watch(t.Context(), &corev1.NodeList{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := s.Client.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(metav1.NamespaceDefault))
	if err != nil {
		t.Fatal(err)
	}
	var following sync.WaitGroup
	for _, events := range []watch.Interface{nodes, pods} {
		following.Go(func() {
			for event := range events.ResultChan() {
				s.check(t, event.Object)
			}
			if t.Context().Err() == nil {
				t.Error("a watch ended before the test")
			}
		})
	}
	t.Cleanup(following.Wait)
}

func (s *holds) check(t *testing.T, obj any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch obj := obj.(type) {
	case *corev1.Node:
		if key := s.held[obj.Name]; key != "" && !testenv.HasTaint(obj, key) {
			t.Errorf("node %s is released early: %v", obj.Name, obj.Spec.Taints)
		}
		if len(s.held) > 0 && obj.Name == "completed" && testenv.HasTaint(obj, testenv.TaintKey("once")) {
			t.Errorf("node %s is held again: %v", obj.Name, obj.Spec.Taints)
		}
	case *corev1.Pod:
		if len(s.held) > 0 && isOpen(obj) {
			t.Errorf("the gate of pod %s opened early: %v", obj.Name, obj.Status.Conditions)
		}
	}
}

func isOpen(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == podv1alpha1.DefaultGate && condition.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// replace ends a manager, as the kubelet does.
func (s *holds) replace(t *testing.T, manager *controlplane.Process) {
	t.Helper()
	if code := manager.Terminate(); code != 0 {
		t.Errorf("the manager ended with %d:\n%s", code, manager.Log())
	}
}

// wantWorking checks that the manager enforces a new rule, and holds a new node of every rule.
func (s *holds) wantWorking(t *testing.T, name string) {
	t.Helper()
	s.Create(t, testenv.Rule(name))
	s.EventuallyCovered(t, name)
	for _, rule := range s.rules {
		if !rule.Spec.DryRun {
			s.hold(t, rule)
		}
	}
}

// release sets every condition to True and deletes every rule. Nothing may be left.
func (s *holds) release(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	held := s.held
	s.held = nil
	s.mu.Unlock()
	for node, key := range held {
		s.SetCondition(t, node, testenv.Condition, corev1.ConditionTrue)
		s.EventuallyNode(t, node, "released", func(n *corev1.Node) bool { return !testenv.HasTaint(n, key) })
	}
	var rules v1alpha1.NodeReadinessRuleList
	if err := s.Client.List(t.Context(), &rules); err != nil {
		t.Fatal(err)
	}
	all := []client.Object{s.pods}
	for i := range rules.Items {
		all = append(all, &rules.Items[i])
	}
	for _, rule := range all {
		if err := s.Client.Delete(t.Context(), rule); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, rule.GetName()+" to be gone", func(ctx context.Context) error {
			if err := s.Client.Get(ctx, client.ObjectKeyFromObject(rule), rule); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it exists: %v", err)
			}
			return nil
		})
	}
	for node := range held {
		s.EventuallyNode(t, node, "clean", clean)
	}
	s.EventuallyNode(t, "completed", "clean", clean)
	var pod corev1.Pod
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "gated"}, &pod); err != nil || !isOpen(&pod) {
		t.Errorf("after the deletion of its rule the gate is closed: %v, %v", pod.Status.Conditions, err)
	}
}

// clean reports whether nothing of Readygate is left on the node.
func clean(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if strings.HasPrefix(taint.Key, "readiness.k8s.io/") {
			return false
		}
	}
	return len(node.Annotations) == 0
}

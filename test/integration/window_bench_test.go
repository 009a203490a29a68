package integration_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/testenv"
)

// podsPerNewNode is the number of pods that wait for each node that is created.
const podsPerNewNode = 5

// BenchmarkWindow measures the time between the creation of a node and its taint on an API server that does not add the
// taint at creation, and how many waiting pods the scheduler binds to the node meanwhile. The pods tolerate the taint
// node.kubernetes.io/not-ready, which every node has at first.
func BenchmarkWindow(b *testing.B) {
	for _, burst := range []int{1, 100} {
		b.Run(fmt.Sprintf("nodes at once=%d", burst), func(b *testing.B) {
			w := newWindow(b)
			var windows []time.Duration
			nodes, early, pods := 0, 0, 0
			for b.Loop() {
				for range 100 / burst {
					w.round(burst)
				}
				w.mu.Lock()
				for _, created := range w.nodes {
					windows = append(windows, created.tainted.Sub(created.at))
					nodes++
					early += min(created.pods, 1)
					pods += created.pods
				}
				clear(w.nodes)
				w.mu.Unlock()
			}
			slices.Sort(windows)
			for _, percent := range []int{50, 99} {
				b.ReportMetric(float64(testenv.Distribution(windows).Quantile(percent).Microseconds())/1000, fmt.Sprintf("ms-p%d", percent))
			}
			b.ReportMetric(100*float64(early)/float64(nodes), "%nodes-with-early-pods")
			b.ReportMetric(float64(pods)/float64(nodes), "early-pods/node")
			b.ReportMetric(0, "ns/op") // of many nodes, so not useful
		})
	}
}

// window is a cluster with a scheduler, in which the manager adds all taints.
type window struct {
	b     *testing.B
	c     *testenv.Cluster
	mu    sync.Mutex
	nodes map[string]*createdNode
	count int
}

type createdNode struct {
	at, tainted time.Time
	pods        int
}

func newWindow(b *testing.B) *window {
	b.Helper()
	w := &window{b: b, c: testenv.StartOwnCluster(b, "--disable-admission-plugins", "ServiceAccount,MutatingAdmissionPolicy"), nodes: map[string]*createdNode{}}
	if err := w.c.InstallPolicies(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := w.c.StartScheduler(b.Context()); err != nil {
		b.Fatal(err)
	}
	w.c.StartProcess(b, testenv.ManagerUser)
	w.c.Create(b, testenv.Rule("window"))
	w.c.EventuallyRule(b, "window", "enforced", testenv.Enforced)
	events, err := w.c.Client.Watch(b.Context(), &corev1.NodeList{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			w.see(event)
		}
	}()
	return w
}

// see records when a node first has the taint.
func (w *window) see(event watch.Event) {
	node, ok := event.Object.(*corev1.Node)
	if !ok || !testenv.HasTaint(node, testenv.TaintKey("window")) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if created := w.nodes[node.Name]; created != nil && created.tainted.IsZero() {
		created.tainted = time.Now()
	}
}

// round creates nodes at once while pods wait, and deletes them with the pods.
func (w *window) round(burst int) {
	w.b.Helper()
	ctx := w.b.Context()
	for range burst * podsPerNewNode {
		w.count++
		if err := w.c.Client.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("window-%d", w.count)},
			Spec: corev1.PodSpec{
				Containers:  []corev1.Container{{Name: "app", Image: "app"}},
				Tolerations: []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
			},
		}); err != nil {
			w.b.Fatal(err)
		}
	}
	testenv.Eventually(w.b, "the scheduler to have tried every pod", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := w.c.Client.List(ctx, &pods); err != nil {
			return err
		}
		for i := range pods.Items {
			if len(pods.Items[i].Status.Conditions) == 0 { // PodScheduled
				return fmt.Errorf("pod %s is new", pods.Items[i].Name)
			}
		}
		return nil
	})
	var names []string
	var creations sync.WaitGroup
	for range burst {
		w.count++
		name := fmt.Sprintf("window-%d", w.count)
		names = append(names, name)
		creations.Go(func() { w.create(ctx, name) })
	}
	creations.Wait()
	testenv.Eventually(w.b, "all nodes to be tainted", func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for name, created := range w.nodes {
			if created.tainted.IsZero() {
				return fmt.Errorf("%s is not", name)
			}
		}
		return nil
	})
	time.Sleep(time.Second) // bindings that are under way
	var pods corev1.PodList
	if err := w.c.Client.List(ctx, &pods); err != nil {
		w.b.Fatal(err)
	}
	w.mu.Lock()
	for i := range pods.Items {
		if name := pods.Items[i].Spec.NodeName; slices.Contains(names, name) {
			w.nodes[name].pods++
		}
	}
	w.mu.Unlock()
	if err := w.c.Client.DeleteAllOf(ctx, &corev1.Node{}); err != nil {
		w.b.Fatal(err)
	}
	if err := w.c.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(metav1.NamespaceDefault), client.GracePeriodSeconds(0)); err != nil {
		w.b.Fatal(err)
	}
}

func (w *window) create(ctx context.Context, name string) {
	node := testenv.Node(name, testenv.Pool("window"), func(n *corev1.Node) {
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi")}
	})
	w.mu.Lock()
	created := &createdNode{at: time.Now()}
	w.nodes[name] = created
	w.mu.Unlock()
	if err := w.c.Client.Create(ctx, node); err != nil {
		w.b.Error(err)
	}
}

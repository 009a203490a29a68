package podgate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/boot"
	"github.com/readygate/readygate/internal/testenv"
)

// stage is the namespace, node and rules of one test.
type stage struct {
	*testenv.Cluster
	t *testing.T
	// id is the name of the namespace and of the node, and begins those of rules.
	id string
	// configs are the identities of agents, by node, and agents is how many were started.
	configs map[string]*rest.Config
	agents  *int
}

// newStage creates a namespace and a node on the shared control plane.
func newStage(t *testing.T) *stage {
	t.Helper()
	return stageOn(t, cluster(t))
}

// stageOn is newStage on the test's own control plane.
func stageOn(t *testing.T, c *testenv.Cluster) *stage {
	t.Helper()
	s := &stage{Cluster: c, t: t, id: testenv.NameOf(t), configs: map[string]*rest.Config{}, agents: new(int)}
	s.namespace(s.id, s.labels())
	s.node(s.id)
	return s
}

// in returns the stage for a subtest.
func (s *stage) in(t *testing.T) *stage {
	same := *s
	same.t = t
	return &same
}

// labels returns the namespace labels that the rules of the stage select.
func (s *stage) labels() map[string]string { return map[string]string{"stage": s.id} }

// namespace creates a namespace with these labels in which pods can be created.
func (s *stage) namespace(name string, labels map[string]string) {
	s.t.Helper()
	s.Create(s.t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	s.account(name)
}

// account creates the default service account of a namespace.
func (s *stage) account(namespace string) {
	s.t.Helper()
	err := s.Client.Create(s.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}})
	if client.IgnoreAlreadyExists(err) != nil {
		s.t.Fatal(err)
	}
}

// node creates a node. It has the boot ID of this machine, which agents in this process read.
func (s *stage) node(name string) {
	s.t.Helper()
	s.Create(s.t, testenv.Node(name, nil, func(n *corev1.Node) { n.Status.NodeInfo.BootID = boot.ID() }))
}

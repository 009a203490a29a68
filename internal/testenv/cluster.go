package testenv

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/api/crds"
	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/mutatingpolicy"
)

const (
	// ManagerUser is the user of the manager. It has the rights of the manager's generated role only.
	ManagerUser = admission.ManagerUser
	// SecondManagerUser has the same rights, for a second manager that a test distinguishes from the first.
	SecondManagerUser = "readygate-manager-second"
	// ManagerNamespace is the namespace of the manager's lease.
	ManagerNamespace = admission.ManagerNamespace
)

// Cluster is a control plane, with the CRDs and the manager's role installed unless it comes
// from Connect.
type Cluster struct {
	*controlplane.ControlPlane
	// Client is a cluster administrator's client without a cache.
	Client client.WithWatch
	Config *rest.Config

	installed map[string][]byte // what etcd stores, by key, after the CRDs and the manager's role; set by StartCluster

	mu         sync.Mutex
	auditStart int64                 // size of the audit log when the current test began to use the control plane
	tails      map[string]*auditTail // by user
}

// Root returns the root directory of the repository.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Binaries returns the directory of the control plane's binaries: KUBEBUILDER_ASSETS, or the directory that
// make kube fills.
func Binaries() string {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir
	}
	return filepath.Join(Root(), "bin", "kube")
}

var setScheme = sync.OnceValue(func() error {
	return errors.Join(apiextensionsv1.AddToScheme(scheme.Scheme), v1alpha1.AddToScheme(scheme.Scheme), podv1alpha1.AddToScheme(scheme.Scheme))
})

// NewCluster starts a control plane that the caller stops.
func NewCluster(ctx context.Context, apiServerArgs ...string) (*Cluster, error) {
	plane, err := controlplane.Start(ctx, controlplane.Options{Binaries: Binaries(), APIServerArgs: apiServerArgs})
	if err != nil {
		return nil, err
	}
	c, err := Connect(plane)
	if err == nil {
		err = c.install(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	return c, nil
}

// Connect returns a cluster for a control plane, and installs nothing there.
func Connect(cp *controlplane.ControlPlane) (*Cluster, error) {
	if err := setScheme(); err != nil {
		return nil, err
	}
	config, err := cp.Admin()
	if err != nil {
		return nil, err
	}
	all, err := mutatingpolicy.NewClient(config, client.Options{})
	return &Cluster{ControlPlane: cp, Client: all, Config: config}, err
}

// As returns a client of this user.
func (c *Cluster) As(t testing.TB, user string, groups ...string) client.Client {
	t.Helper()
	config, err := c.ControlPlane.Config(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	as, err := mutatingpolicy.NewClient(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return as
}

// install installs the CRDs and the manager's role.
func (c *Cluster) install(ctx context.Context) error {
	if err := c.installCRDs(ctx); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ManagerNamespace}}
	if err := c.Client.Create(ctx, namespace); err != nil {
		return err
	}
	return c.installRole(ctx)
}

func (c *Cluster) installCRDs(ctx context.Context) error {
	definitions, err := crds.Definitions()
	if err != nil {
		return err
	}
	for _, crd := range definitions {
		if err := c.Client.Create(ctx, crd); err != nil {
			return err
		}
	}
	return c.awaitCRDs(ctx)
}

func (c *Cluster) awaitCRDs(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return c.Client.List(ctx, &v1alpha1.NodeReadinessRuleList{}) == nil && c.Client.List(ctx, &podv1alpha1.PodReadinessRuleList{}) == nil, nil
	})
}

// installRole binds the manager's users to the manager's generated role only.
func (c *Cluster) installRole(ctx context.Context) error {
	data, err := os.ReadFile(filepath.Join(Root(), "charts", "readygate", "files", "role.yaml"))
	if err != nil {
		return err
	}
	for _, doc := range strings.Split(string(data), "\n---\n") {
		var role unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(doc), &role.Object); err != nil {
			return err
		}
		if err := c.Client.Create(ctx, &role); err != nil {
			return err
		}
		if err := c.Client.Create(ctx, bindingOf(&role)); err != nil {
			return err
		}
	}
	return nil
}

func bindingOf(role *unstructured.Unstructured) client.Object {
	subjects := []rbacv1.Subject{
		{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: ManagerUser},
		{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: SecondManagerUser},
	}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.GetKind(), Name: role.GetName()}
	meta := metav1.ObjectMeta{Name: ManagerUser, Namespace: role.GetNamespace()}
	if role.GetKind() == "Role" {
		return &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}
	}
	return &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}
}

// Events returns the events about an object, in the order of their creation.
func (c *Cluster) Events(t testing.TB, obj client.Object) []eventsv1.Event {
	t.Helper()
	var list eventsv1.EventList
	if err := c.Client.List(t.Context(), &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		t.Fatal(err)
	}
	var about []eventsv1.Event
	for _, event := range list.Items {
		if event.Regarding.UID == obj.GetUID() {
			about = append(about, event)
		}
	}
	return about
}

// Apply creates the objects of YAML documents, as kubectl create does.
func (c *Cluster) Apply(ctx context.Context, manifests string) error {
	for _, doc := range strings.Split(manifests, "\n---\n") {
		obj := &unstructured.Unstructured{}
		data, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			return err
		}
		if err := kruntime.DecodeInto(unstructured.UnstructuredJSONScheme, data, obj); err != nil {
			return err
		}
		if err := c.Client.Create(ctx, obj, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
			return err
		}
	}
	return nil
}

package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/controlplane"
)

// Namespace is the namespace of the pods of a scenario.
const Namespace = "readygate-demo"

// cluster is the cluster on which a scenario is played.
type cluster struct {
	client     client.Client
	config     *rest.Config // may do everything that the demo does
	kubeconfig string       // a file with the same
	plane      *controlplane.ControlPlane
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), podv1alpha1.AddToScheme(scheme))
}

// newCluster is a cluster in the cluster of this configuration. Nothing is put there yet.
func newCluster(config *rest.Config) (*cluster, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, -1
	config.WarningHandlerWithContext = rest.NoWarnings{}
	all, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return &cluster{config: config, client: all}, nil
}

// startCluster starts a control plane of the demo's own, with a scheduler and the controllers of
// Kubernetes.
func startCluster(ctx context.Context, binaries, dir string, say func(string)) (*cluster, error) {
	say("starting etcd and kube-apiserver")
	plane, err := controlplane.Start(ctx, controlplane.Options{Binaries: binaries})
	if err != nil {
		return nil, err
	}
	s, err := clusterOn(ctx, plane, dir, say)
	if err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	return s, nil
}

func clusterOn(ctx context.Context, plane *controlplane.ControlPlane, dir string, say func(string)) (*cluster, error) {
	say("starting kube-scheduler, kube-controller-manager and KWOK")
	if err := errors.Join(plane.StartScheduler(ctx), plane.StartControllerManager(ctx), plane.StartKWOK(ctx)); err != nil {
		return nil, err
	}
	admin, err := plane.Admin()
	if err != nil {
		return nil, err
	}
	s, err := newCluster(admin)
	if err != nil {
		return nil, err
	}
	s.plane, s.kubeconfig = plane, filepath.Join(dir, "kubeconfig")
	return s, controlplane.WriteKubeconfig(s.kubeconfig, admin)
}

// tokenLifetime is the maximum duration of a demo.
const tokenLifetime = 12 * time.Hour

// as is the configuration of a service account: it may do what its role allows. The token
// may be bound to an object, and lives no longer than that; nil: it is not.
func (s *cluster) as(ctx context.Context, namespace, account string, bound *authenticationv1.BoundObjectReference) (*rest.Config, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenLifetime.Seconds())), BoundObjectRef: bound}}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := s.client.SubResource("token").Create(ctx, owner, request); err != nil {
		return nil, fmt.Errorf("asking for a token of the account %s/%s: %w", namespace, account, err)
	}
	config := rest.AnonymousClientConfig(s.config)
	config.BearerToken = request.Status.Token
	return config, nil
}

// create creates objects in this order.
func (s *cluster) create(ctx context.Context, objects ...client.Object) error {
	for _, obj := range objects {
		if err := s.client.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %T %s: %w", obj, obj.GetName(), err)
		}
	}
	return nil
}

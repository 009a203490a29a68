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

// stage is the cluster on which a scenario is played.
type stage struct {
	client     client.Client
	config     *rest.Config // may do everything that the demo does
	kubeconfig string       // a file with the same
	plane      *controlplane.ControlPlane
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), podv1alpha1.AddToScheme(scheme))
}

// newStage is a stage in the cluster of this configuration. Nothing is put there yet.
func newStage(config *rest.Config) (*stage, error) {
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
	return &stage{config: config, client: all}, nil
}

// startPlane starts a control plane of the demo's own, with a scheduler and the controllers of
// Kubernetes.
func startPlane(ctx context.Context, binaries, dir string, say func(string)) (*stage, error) {
	say("starting etcd and kube-apiserver")
	plane, err := controlplane.Start(ctx, controlplane.Options{Binaries: binaries})
	if err != nil {
		return nil, err
	}
	s, err := stageOn(ctx, plane, dir, say)
	if err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	return s, nil
}

func stageOn(ctx context.Context, plane *controlplane.ControlPlane, dir string, say func(string)) (*stage, error) {
	say("starting kube-scheduler, kube-controller-manager and KWOK")
	if err := errors.Join(plane.StartScheduler(ctx), plane.StartControllerManager(ctx), plane.StartKWOK(ctx)); err != nil {
		return nil, err
	}
	admin, err := plane.Admin()
	if err != nil {
		return nil, err
	}
	s, err := newStage(admin)
	if err != nil {
		return nil, err
	}
	s.plane, s.kubeconfig = plane, filepath.Join(dir, "kubeconfig")
	return s, controlplane.WriteKubeconfig(s.kubeconfig, admin)
}

// tokenLife is longer than anybody watches.
const tokenLife = 12 * time.Hour

// as is the configuration of a service account: whoever plays it can do what its role says. The token
// may be bound to an object, and lives no longer than that; nil: it is not.
func (s *stage) as(ctx context.Context, namespace, account string, bound *authenticationv1.BoundObjectReference) (*rest.Config, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenLife.Seconds())), BoundObjectRef: bound}}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := s.client.SubResource("token").Create(ctx, owner, request); err != nil {
		return nil, fmt.Errorf("asking for a token of the account %s/%s: %w", namespace, account, err)
	}
	config := rest.AnonymousClientConfig(s.config)
	config.BearerToken = request.Status.Token
	return config, nil
}

// create creates objects in this order.
func (s *stage) create(ctx context.Context, objects ...client.Object) error {
	for _, obj := range objects {
		if err := s.client.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %T %s: %w", obj, obj.GetName(), err)
		}
	}
	return nil
}

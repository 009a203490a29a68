package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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

// fieldOwner is the field owner of the demo's writes as kubectl or a kubelet.
const fieldOwner = client.FieldOwner("readygate-demo")

// cluster is the cluster on which a scenario is played.
type cluster struct {
	client     client.Client
	config     *rest.Config // of an administrator
	kubeconfig string       // path of a file with the same
	plane      *controlplane.ControlPlane
}

// startCluster starts a control plane with a scheduler, the controllers of Kubernetes, and KWOK. The
// cluster is nil if the control plane does not start; after any other error, the caller must stop it.
func startCluster(ctx context.Context, binaries, dir string, say func(string)) (*cluster, error) {
	say("starting etcd and kube-apiserver")
	plane, err := controlplane.Start(ctx, controlplane.Options{Binaries: binaries})
	if err != nil {
		return nil, err
	}
	c := &cluster{plane: plane, kubeconfig: filepath.Join(dir, "kubeconfig")}
	say("starting kube-scheduler, kube-controller-manager and KWOK")
	if err := errors.Join(plane.StartScheduler(ctx), plane.StartControllerManager(ctx), plane.StartKWOK(ctx)); err != nil {
		return c, err
	}
	admin, err := plane.Admin()
	if err != nil {
		return c, err
	}
	scheme := runtime.NewScheme()
	err = errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), podv1alpha1.AddToScheme(scheme),
		controlplane.WriteKubeconfig(c.kubeconfig, admin))
	if err != nil {
		return c, err
	}
	c.config = rest.CopyConfig(admin)
	c.config.QPS, c.config.Burst = -1, -1
	c.config.WarningHandlerWithContext = rest.NoWarnings{}
	c.client, err = client.New(c.config, client.Options{Scheme: scheme})
	return c, err
}

// tokenLifetime is the maximum duration of a demo.
const tokenLifetime = 12 * time.Hour

// as returns the client configuration of a service account. The token is bound to an object, and expires with it;
// nil: not bound.
func (c *cluster) as(ctx context.Context, namespace, account string, bound *authenticationv1.BoundObjectReference) (*rest.Config, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenLifetime.Seconds())), BoundObjectRef: bound}}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := c.client.SubResource("token").Create(ctx, owner, request); err != nil {
		return nil, fmt.Errorf("requesting a token of the service account %s/%s: %w", namespace, account, err)
	}
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken = request.Status.Token
	return config, nil
}

// create creates objects in this order.
func (c *cluster) create(ctx context.Context, objects ...client.Object) error {
	for _, obj := range objects {
		if err := c.client.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %T %s: %w", obj, obj.GetName(), err)
		}
	}
	return nil
}

// patch merges fields into an object, or into its status if status is one of them. Other conditions stay unchanged.
func (c *cluster) patch(ctx context.Context, obj client.Object, owner client.FieldOwner, fields map[string]any) error {
	data, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	patch := client.RawPatch(types.StrategicMergePatchType, data)
	if _, ofStatus := fields["status"]; ofStatus {
		err = c.client.Status().Patch(ctx, obj, patch, owner)
	} else {
		err = c.client.Patch(ctx, obj, patch, owner)
	}
	if err != nil {
		return fmt.Errorf("patching %T %s: %w", obj, obj.GetName(), err)
	}
	return nil
}

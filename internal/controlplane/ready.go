package controlplane

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const startTimeout = 2 * time.Minute

// auditPolicy logs every finished request once, without its body. Requests that only read
// are kept too: a test may count them.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
omitManagedFields: true
rules:
- level: None
  users: [system:apiserver, "system:anonymous"]
- level: Metadata
`

func (c *ControlPlane) writeAuditPolicy() error {
	return os.WriteFile(c.file("audit-policy.yaml"), []byte(auditPolicy), 0o600)
}

// waitReady returns when the API server answers ready and has made the namespace that
// events of cluster-scoped objects go to.
func (c *ControlPlane) waitReady(ctx context.Context) error {
	config, err := c.Admin()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		if exited, state := c.apiserver.exited(); exited {
			return false, fmt.Errorf("kube-apiserver %s:\n%s", state, c.apiserver.tail())
		}
		if _, last = client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); last != nil {
			return false, nil
		}
		_, last = client.CoreV1().Namespaces().Get(ctx, corev1.NamespaceDefault, metav1.GetOptions{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for kube-apiserver: %w (last answer: %v)", err, last)
	}
	return nil
}

package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
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
func waitReady(ctx context.Context, apiserver *process, admin *rest.Config) error {
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	return apiserver.await(ctx, func(ctx context.Context) error {
		if _, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
			return err
		}
		_, err := client.CoreV1().Namespaces().Get(ctx, corev1.NamespaceDefault, metav1.GetOptions{})
		return err
	})
}

// await returns when the check passes, or soon after the process has ended.
func (p *process) await(ctx context.Context, check func(context.Context) error) error {
	name := filepath.Base(p.path)
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		if exited, state := p.exited(); exited {
			return false, fmt.Errorf("%s %s:\n%s", name, state, p.tail())
		}
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w (last answer: %v)", name, err, last)
	}
	return nil
}

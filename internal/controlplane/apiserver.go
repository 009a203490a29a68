package controlplane

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// StartAPIServer starts the API server again on the same address and waits until it is ready.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	admin, err := c.Admin()
	if err != nil {
		return err
	}
	if c.apiserver, err = c.startAPIServer(c.port, "apiserver.log", c.AuditLog()); err != nil {
		return err
	}
	return awaitReady(ctx, c.apiserver, admin)
}

// StartReplica starts one more API server on the same etcd, as in clusters with several control plane nodes, with these
// arguments after those of the first. It returns the configuration of an administrator there, when the replica is ready.
// Each API server observes writes through the other one a moment later. KillAPIServer does not end a replica; Stop does.
func (c *ControlPlane) StartReplica(ctx context.Context, args ...string) (*rest.Config, error) {
	ports, err := FreePorts(1)
	if err != nil {
		return nil, err
	}
	admin, err := c.Admin()
	if err != nil {
		return nil, err
	}
	admin.Host = "https://" + loopbackAddress(ports[0])
	name := fmt.Sprintf("apiserver-%d", ports[0])
	p, err := c.startAPIServer(ports[0], name+".log", c.file(name+"-audit.log"), args...)
	if err != nil {
		return nil, err
	}
	c.others = append(c.others, p)
	return admin, awaitReady(ctx, p, admin)
}

// KillAPIServer ends the API server without warning.
func (c *ControlPlane) KillAPIServer() error {
	return c.apiserver.Kill()
}

// AuditLog is the path of the API server's audit log: one line for each finished request,
// with user, verb, resource and code.
func (c *ControlPlane) AuditLog() string {
	return c.file("audit.log")
}

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

// startAPIServer starts an API server on this port of loopback.
func (c *ControlPlane) startAPIServer(port int, log, auditLog string, args ...string) (*Process, error) {
	return c.process("kube-apiserver", log, slices.Concat([]string{
		"--etcd-servers", c.etcdURL,
		"--secure-port", strconv.Itoa(port),
		"--tls-cert-file", c.file("apiserver.crt"), "--tls-private-key-file", c.file("apiserver.key"),
		"--client-ca-file", c.file("ca.crt"),
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", c.file("apiserver.key"),
		"--service-account-signing-key-file", c.file("apiserver.key"),
		"--authorization-mode", "Node,RBAC",
		"--enable-admission-plugins", "NodeRestriction",
		"--audit-policy-file", c.file("audit-policy.yaml"), "--audit-log-path", auditLog,
		"--audit-log-mode", "blocking", "--audit-log-maxsize", "0", // never rotated: it is read while it grows
	}, c.networkArgs(), c.opts.APIServerArgs, args)...)
}

// networkArgs are the arguments for the network of the API server. Without real nodes, the admission plugin ServiceAccount
// is disabled, because no kubelet would mount the token that it requires.
func (c *ControlPlane) networkArgs() []string {
	n := c.opts.Network
	if n == nil {
		return []string{"--bind-address", loopback, "--service-cluster-ip-range", "10.0.0.0/24", "--disable-admission-plugins", "ServiceAccount"}
	}
	return []string{
		"--bind-address", "0.0.0.0", "--advertise-address", n.Address, "--service-cluster-ip-range", n.Services,
		"--kubelet-client-certificate", c.file("kubelet-client.crt"), "--kubelet-client-key", c.file("kubelet-client.key"),
		"--kubelet-preferred-address-types", "InternalIP", "--allow-privileged",
	}
}

// awaitReady returns when the API server is ready and has created the namespace for events of cluster-scoped objects.
func awaitReady(ctx context.Context, apiserver *Process, admin *rest.Config) error {
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

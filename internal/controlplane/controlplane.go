package controlplane

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Options say what to start.
type Options struct {
	// Binaries is the directory with etcd, kube-apiserver and whatever else is started.
	// Required.
	Binaries string

	// APIServerArgs are added to the arguments of every API server; zero adds none.
	APIServerArgs []string

	// ControllerManagerArgs are added to those of the controller manager; zero adds none.
	ControllerManagerArgs []string

	// Network is what real nodes need of the control plane; nil means that there are none, and
	// that nothing listens but on loopback.
	Network *Network
}

// ControlPlane is a running etcd and API server, and what was started beside them.
type ControlPlane struct {
	// APIServer is the address of the API server, e.g. 127.0.0.1:34567. It stays the same
	// over restarts.
	APIServer string

	opts      Options
	dir       string
	ca        *authority
	etcd      *process
	etcdURL   string
	apiserver *process
	others    []*process // replicas and components, in the order of their start
}

// Start starts etcd and an API server and returns when the API server is ready. Stop ends
// them and removes their files.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	dir, err := os.MkdirTemp("", "controlplane-")
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{opts: opts, dir: dir}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context) error {
	for _, write := range []func() error{c.writeKeys, c.writeAuditPolicy} {
		if err := write(); err != nil {
			return err
		}
	}
	ports, err := FreePorts(3)
	if err != nil {
		return err
	}
	host := loopback
	if c.opts.Network != nil {
		host = c.opts.Network.Address
	}
	client, peer := loopbackURL(ports[0]), loopbackURL(ports[1])
	c.etcdURL = client
	c.etcd = c.process("etcd", "etcd.log",
		"--data-dir", c.file("etcd"), "--name", "default", "--log-level", "error", "--unsafe-no-fsync",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	c.APIServer = net.JoinHostPort(host, strconv.Itoa(ports[2]))
	c.apiserver = c.newAPIServer(ports[2], "apiserver.log", c.AuditLog())
	if err := c.etcd.start(); err != nil {
		return err
	}
	return c.StartAPIServer(ctx)
}

// newAPIServer is an API server, not started yet, on this port of loopback.
func (c *ControlPlane) newAPIServer(port int, log, auditLog string, args ...string) *process {
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
	}, c.opts.Network.apiServerArgs(c), c.opts.APIServerArgs, args)...)
}

// Stop ends every process and removes every file of the control plane.
func (c *ControlPlane) Stop() error {
	errs := []error{c.StopOthers()}
	for _, p := range []*process{c.apiserver, c.etcd} {
		if p != nil {
			errs = append(errs, p.kill())
		}
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}

// StopOthers ends everything but etcd and the API server that Start started.
func (c *ControlPlane) StopOthers() error {
	var errs []error
	for _, p := range c.others {
		errs = append(errs, p.kill())
	}
	c.others = nil
	return errors.Join(errs...)
}

// StartAPIServer starts the API server where it was before and waits until it is ready.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	if err := c.apiserver.start(); err != nil {
		return err
	}
	admin, err := c.Admin()
	if err != nil {
		return err
	}
	return waitReady(ctx, c.apiserver, admin)
}

// KillAPIServer ends the API server without warning.
func (c *ControlPlane) KillAPIServer() error {
	return c.apiserver.kill()
}

// AuditLog is the path of the API server's audit log: one line for each finished request,
// with user, verb, resource and code.
func (c *ControlPlane) AuditLog() string {
	return c.file("audit.log")
}

// EtcdMetrics is the URL of etcd's metrics, which tell what was written.
func (c *ControlPlane) EtcdMetrics() string { return c.etcdURL + "/metrics" }

// Config is a client configuration for a user of these groups. Without a group, the user
// may do what RBAC grants it.
func (c *ControlPlane) Config(user string, groups ...string) (*rest.Config, error) {
	return c.configAt(c.APIServer, user, groups)
}

func (c *ControlPlane) configAt(address, user string, groups []string) (*rest.Config, error) {
	cert, key, err := c.ca.clientCert(user, groups)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            "https://" + address,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.pem, CertData: cert, KeyData: key},
		QPS:             -1,
	}, nil
}

// Admin is the configuration of a user that may do everything.
func (c *ControlPlane) Admin() (*rest.Config, error) {
	return c.Config(adminUser, adminGroup)
}

// WriteKubeconfig writes the configuration to a file that kubectl reads.
func WriteKubeconfig(path string, config *rest.Config) error {
	const name = "default"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, path)
}

func (c *ControlPlane) file(name string) string { return filepath.Join(c.dir, name) }

func (c *ControlPlane) process(binary, log string, args ...string) *process {
	return &process{path: filepath.Join(c.opts.Binaries, binary), args: args, log: c.file(log)}
}

const (
	adminUser  = "admin"
	adminGroup = "system:masters"
	loopback   = "127.0.0.1"
)

func loopbackAddress(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

func loopbackURL(port int) string { return "http://" + loopbackAddress(port) }

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Options configure the control plane.
type Options struct {
	// Binaries is the directory with the binaries of etcd, kube-apiserver and all other components that are started. Required.
	Binaries string

	// APIServerArgs are added to the arguments of every API server; zero adds none.
	APIServerArgs []string

	// ControllerManagerArgs are added to those of the controller manager; zero adds none.
	ControllerManagerArgs []string

	// Network is the network of real nodes; nil means that there are no real nodes, and that all processes listen on loopback
	// only.
	Network *Network
}

// Network is a network that nodes with real kubelets share with the control plane. The API
// server then listens on all its addresses, reaches kubelets, and gives pods their tokens.
type Network struct {
	// Address is that of the control plane in this network, e.g. 10.88.0.1.
	Address string
	// Services is the range of Services, and ServiceAddress its first address, which is that of
	// the API server, e.g. 10.96.0.0/16 and 10.96.0.1.
	Services, ServiceAddress string
	// Pods is the range that every node gets a /24 of, e.g. 10.244.0.0/16.
	Pods string
}

// ControlPlane is a running etcd and API server, and the components that were started in addition.
type ControlPlane struct {
	// APIServer is the address of the API server, e.g. 127.0.0.1:34567. It stays the same
	// over restarts.
	APIServer string

	opts      Options
	dir       string
	ca        *authority
	etcdURL   string
	port      int        // of the API server
	etcd      *Process   // nil until it is started
	apiserver *Process   // the same
	others    []*Process // replicas and components, in the order of their start
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
	if err := c.writeKeys(); err != nil {
		return err
	}
	if err := os.WriteFile(c.file("audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return err
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
	c.etcdURL, c.port = client, ports[2]
	c.APIServer = net.JoinHostPort(host, strconv.Itoa(c.port))
	c.etcd, err = c.process("etcd", "etcd.log",
		"--data-dir", c.file("etcd"), "--name", "default", "--log-level", "error", "--unsafe-no-fsync",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	if err != nil {
		return err
	}
	return c.StartAPIServer(ctx)
}

// Stop ends every process and removes every file of the control plane.
func (c *ControlPlane) Stop() error {
	err := c.StopOthers()
	for _, p := range []*Process{c.apiserver, c.etcd} {
		if p != nil {
			err = errors.Join(err, p.Kill())
		}
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

// StopOthers ends all processes except etcd and the API server that Start started.
func (c *ControlPlane) StopOthers() error {
	var errs []error
	for _, p := range c.others {
		errs = append(errs, p.Kill())
	}
	c.others = nil
	return errors.Join(errs...)
}

// EtcdURL is where etcd serves its API and /metrics.
func (c *ControlPlane) EtcdURL() string { return c.etcdURL }

// Config is a client configuration for a user of these groups. Without a group, the user
// may do what RBAC grants it.
func (c *ControlPlane) Config(user string, groups ...string) (*rest.Config, error) {
	cert, key, err := c.ca.clientCert(user, groups)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            "https://" + c.APIServer,
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

// CA is the path of the certificate authority's certificate, which kubelets trust.
func (c *ControlPlane) CA() string { return c.file("ca.crt") }

func (c *ControlPlane) process(binary, log string, args ...string) (*Process, error) {
	cmd := exec.Command(filepath.Join(c.opts.Binaries, binary), args...)
	// Control planes of tests are small, and with the default of 100 garbage collection takes a fifth of their CPU
	// time. Those of benchmarks and of the demo have the default.
	if testing.Testing() && os.Getenv("GOGC") == "" {
		cmd.Env = append(os.Environ(), "GOGC=400")
	}
	p, err := StartProcess(cmd, c.file(log))
	if err != nil {
		return nil, fmt.Errorf("%w (is it built? make kube)", err)
	}
	return p, nil
}

const (
	adminUser  = "admin"
	adminGroup = "system:masters"
	loopback   = "127.0.0.1"
)

func loopbackAddress(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

func loopbackURL(port int) string { return "http://" + loopbackAddress(port) }

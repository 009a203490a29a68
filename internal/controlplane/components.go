package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"k8s.io/client-go/rest"
)

// Components run without leader election: there is one of each, and a component that loses its lease while a test restarts
// the API server would exit. Their client-side rate limits are high enough to have no effect.

// StartScheduler starts kube-scheduler and returns when it schedules. Stop ends it.
func (c *ControlPlane) StartScheduler(ctx context.Context) error {
	return c.startComponent(ctx, "kube-scheduler", "/readyz")
}

// StartControllerManager starts kube-controller-manager and returns when it is healthy. Each
// of its controllers has a service account of its own, as in a real cluster. Stop ends it.
func (c *ControlPlane) StartControllerManager(ctx context.Context) error {
	args := []string{
		"--use-service-account-credentials",
		"--service-account-private-key-file", c.file("apiserver.key"),
		"--root-ca-file", c.CA(),
	}
	if n := c.opts.Network; n != nil { // every node gets a part of the pods' range
		args = append(args, "--allocate-node-cidrs", "--cluster-cidr", n.Pods)
	}
	return c.startComponent(ctx, "kube-controller-manager", "/healthz", append(args, c.opts.ControllerManagerArgs...)...)
}

// startComponent starts a program with the flags of Kubernetes components, as the user with the default role of that
// component.
func (c *ControlPlane) startComponent(ctx context.Context, name, health string, args ...string) error {
	ports, err := FreePorts(1)
	if err != nil {
		return err
	}
	kubeconfig, err := c.kubeconfig(name, "system:"+name)
	if err != nil {
		return err
	}
	args = append(args,
		"--kubeconfig", kubeconfig, "--leader-elect=false", "--kube-api-qps", "1000", "--kube-api-burst", "2000",
		"--bind-address", loopback, "--secure-port", strconv.Itoa(ports[0]),
		"--tls-cert-file", c.file("apiserver.crt"), "--tls-private-key-file", c.file("apiserver.key"))
	return c.run(ctx, name, "https://"+loopbackAddress(ports[0])+health, args...)
}

// kubeconfig writes a kubeconfig for this user, and returns its path.
func (c *ControlPlane) kubeconfig(component, user string, groups ...string) (string, error) {
	config, err := c.Config(user, groups...)
	if err != nil {
		return "", err
	}
	path := c.file(component + ".kubeconfig")
	return path, WriteKubeconfig(path, config)
}

// run starts a component and returns when this URL reports that it is healthy.
func (c *ControlPlane) run(ctx context.Context, name, health string, args ...string) error {
	p, err := c.process(name, name+".log", args...)
	if err != nil {
		return err
	}
	c.others = append(c.others, p)
	client, err := rest.HTTPClientFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.pem}})
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return p.await(ctx, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, health, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close() //nolint:errcheck // only read
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", health, answer.Status)
		}
		return nil
	})
}

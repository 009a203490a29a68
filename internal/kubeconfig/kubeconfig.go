// Package kubeconfig loads the configuration of the client of a cluster.
package kubeconfig

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

// Load is a copy of the given configuration; if there is none, what the named file says,
// or what is found in the usual places.
func Load(given *rest.Config, path string) (*rest.Config, error) {
	if given != nil {
		return rest.CopyConfig(given), nil
	}
	load := config.GetConfig
	if path != "" {
		load = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", path) }
	}
	found, err := load()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster (use --kubeconfig, KUBECONFIG or run in a cluster): %w", err)
	}
	return found, nil
}

// InClusterNamespace returns the namespace of the pod that this process runs in. The error names the flag that
// is needed outside of a cluster.
func InClusterNamespace(flag string) (string, error) {
	data, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return "", fmt.Errorf("%s is needed outside of a cluster, e.g. %s=readygate-system: %w", flag, flag, err)
	}
	return strings.TrimSpace(string(data)), nil
}

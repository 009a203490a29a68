package podgate

import (
	"errors"
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/readygate/readygate/internal/core/agents"
	"github.com/readygate/readygate/internal/program"
)

// Options configure the agent. NewOptions returns the defaults; AddFlags adds the flags.
type Options struct {
	program.Options
	// Node is the node of the agent, and Holder the agent's name in the lease.
	Node, Holder string
	MetricsAddr  string
	HealthAddr   string
	// HostRoot is the directory where the node's file system is mounted, e.g. /host; empty: /.
	HostRoot string
	Workers  int

	// Registry registers the metrics.
	Registry *prometheus.Registry
}

// NewOptions returns the defaults. The node and the holder come from the environment.
func NewOptions() *Options {
	return &Options{
		Node:        os.Getenv("NODE_NAME"),
		Holder:      os.Getenv("POD_NAME"),
		MetricsAddr: "127.0.0.1:9477",
		HealthAddr:  "127.0.0.1:9478",
		Workers:     16,
		Registry:    prometheus.NewRegistry(),
	}
}

// AddFlags adds a flag per option.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.Options.AddFlags(flags)
	flags.StringVar(&o.Node, "node-name", o.Node, "Name of the node whose pods the agent reconciles. Default: the environment variable NODE_NAME.")
	flags.StringVar(&o.Holder, "holder", o.Holder, "Holder identity in the agent's lease. Default: the environment variable POD_NAME, or the host name.")
	flags.StringVar(&o.MetricsAddr, "metrics-bind-address", o.MetricsAddr, "Address of the metrics endpoint; 0 disables it. The agent uses the node's network: every client that can reach the node can reach an address of the node.")
	flags.StringVar(&o.HealthAddr, "health-probe-bind-address", o.HealthAddr, "Address of /healthz and /readyz; 0 disables them.")
	flags.StringVar(&o.HostRoot, "host-root", o.HostRoot, "Directory where the node's file system is mounted, e.g. /host. Empty: the root directory.")
	flags.IntVar(&o.Workers, "workers", o.Workers, "Maximum number of concurrent pod reconciles.")
}

// Validate returns an error that names the first invalid flag and a valid value.
func (o *Options) Validate() error {
	switch {
	case o.Node == "":
		return errors.New("--node-name is empty: set it, or set NODE_NAME from spec.nodeName")
	case len(validation.IsDNS1123Subdomain(agents.Name(o.Node))) > 0:
		return fmt.Errorf("--node-name is %q, must be the name of a node of at most 245 characters", o.Node)
	case o.Workers < 1:
		return fmt.Errorf("--workers is %d, must be at least 1, e.g. --workers=16", o.Workers)
	}
	return nil
}

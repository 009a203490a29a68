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

// Options configure the agent. NewOptions has the defaults; AddFlags lets the command line change them.
type Options struct {
	program.Options
	// Node is the node whose pods the agent decides of, and Holder the agent's own name.
	Node, Holder string
	MetricsAddr  string
	HealthAddr   string
	// HostRoot is where the node's files are, e.g. /host; empty: where they are on the node.
	HostRoot string
	Workers  int

	// Registry gets the metrics.
	Registry *prometheus.Registry
}

// NewOptions are the defaults. The node and the holder come from the environment.
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

// AddFlags adds a flag for every option that a user may set.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.Options.AddFlags(flags)
	flags.StringVar(&o.Node, "node-name", o.Node, "Node whose pods the agent decides of. Empty: the variable NODE_NAME.")
	flags.StringVar(&o.Holder, "holder", o.Holder, "Name of the agent in its lease. Empty: the variable POD_NAME, or the host's name.")
	flags.StringVar(&o.MetricsAddr, "metrics-bind-address", o.MetricsAddr, "Address of the metrics endpoint; 0: off. The agent is in the node's network: an address of the node can be reached by everybody who reaches the node.")
	flags.StringVar(&o.HealthAddr, "health-probe-bind-address", o.HealthAddr, "Address of /healthz and /readyz; 0: off.")
	flags.StringVar(&o.HostRoot, "host-root", o.HostRoot, "Directory under which the node's files are found, e.g. /host. Empty: where they are on the node.")
	flags.IntVar(&o.Workers, "workers", o.Workers, "Pods that are looked at at the same time.")
}

// Validate names the first flag that cannot work, and a value that would.
func (o *Options) Validate() error {
	switch {
	case o.Node == "":
		return errors.New("--node-name is empty: name the node, or set NODE_NAME from spec.nodeName")
	case len(validation.IsDNS1123Subdomain(agents.Name(o.Node))) > 0:
		return fmt.Errorf("--node-name is %q, must be the name of a node of at most 245 characters", o.Node)
	case o.Workers < 1:
		return fmt.Errorf("--workers is %d, must be at least 1, e.g. --workers=16", o.Workers)
	}
	return nil
}

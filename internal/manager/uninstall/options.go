package uninstall

import (
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/agents"
	"github.com/readygate/readygate/internal/manager/leadership"
	"github.com/readygate/readygate/internal/program"
)

// What becomes of the rules.
const (
	// KeepRules leaves rules for another controller.
	KeepRules = "keep"
	// DeleteRules deletes every rule.
	DeleteRules = "delete"
)

// Options configure a cleanup. NewOptions has the defaults; AddFlags lets the command line
// change them.
type Options struct {
	program.Options
	// Namespace is where the manager, the reporters, the agents and leases are. Empty: the
	// namespace of the pod that the cleanup runs in.
	Namespace string
	// Peers are namespaces in which another controller of this API may enforce the rules.
	Peers leadership.PeerNamespaces
	// Deployment is the manager's.
	Deployment string
	// Reporters select the DaemonSets of reporters, and their pods. Empty: none.
	Reporters string
	// Agents select the DaemonSet of the agents that open gates of pods, their pods and their
	// leases. Empty: none.
	Agents string
	// Conditions are the types of node conditions that nobody reports any more.
	Conditions []string
	// Rules is KeepRules or DeleteRules.
	Rules string
	// SettleTime is how long the removal of the policies may take to reach every API server.
	SettleTime time.Duration
	// Timeout bounds all of it.
	Timeout time.Duration
	// Out gets the summary.
	Out io.Writer
}

// NewOptions are the defaults.
func NewOptions() *Options {
	return &Options{
		Peers:      leadership.DefaultPeerNamespaces(),
		Deployment: admission.ManagerAccount,
		Reporters:  admission.PartOfLabel + "=" + admission.PartOf + "," + agents.ComponentLabel + "=reporter",
		Agents:     admission.PartOfLabel + "=" + admission.PartOf + "," + agents.ComponentLabel + "=" + agents.Component,
		Rules:      KeepRules,
		SettleTime: 5 * time.Second,
		Timeout:    4 * time.Minute,
		Out:        os.Stdout,
	}
}

// AddFlags adds a flag for every option that a user may set.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.Options.AddFlags(flags)
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace of the manager, the reporters, the agents and their leases. Empty: the namespace that the cleanup runs in.")
	o.Peers.AddFlag(flags)
	flags.StringVar(&o.Deployment, "deployment", o.Deployment, "Name of the manager's Deployment, which is scaled to 0. One that does not exist is no error.")
	flags.StringVar(&o.Reporters, "reporters", o.Reporters, "Labels of the reporters' DaemonSets, which are deleted, and of their pods. Empty: none.")
	flags.StringVar(&o.Agents, "agents", o.Agents, "Labels of the DaemonSet of podgate's agents, which is deleted, of their pods, and of their leases. Empty: none.")
	flags.StringSliceVar(&o.Conditions, "conditions", o.Conditions, "Types of conditions to remove from all nodes, because nobody reports them any more, e.g. example.com/NetworkReady.")
	flags.StringVar(&o.Rules, "rules", o.Rules, "keep: rules stay for another controller, without our finalizer and status. delete: every rule is deleted.")
	flags.DurationVar(&o.SettleTime, "policy-settle-time", o.SettleTime, "How long the removal of the policies readygate-taint-new-nodes and readygate-gate-new-pods may take to reach every API server.")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "How long everything may take. What is not done by then is named, and the exit code is not 0.")
}

// Validate names the first flag that cannot work, and a value that would.
func (o *Options) Validate() error {
	if o.Rules != KeepRules && o.Rules != DeleteRules {
		return fmt.Errorf("--rules is %q, must be keep or delete, e.g. --rules=keep", o.Rules)
	}
	if _, err := labels.Parse(o.Reporters); err != nil {
		return fmt.Errorf("--reporters is %q, must be labels, e.g. --reporters=app.kubernetes.io/component=reporter: %w", o.Reporters, err)
	}
	if _, err := labels.Parse(o.Agents); err != nil {
		return fmt.Errorf("--agents is %q, must be labels, e.g. --agents=app.kubernetes.io/component=podgate: %w", o.Agents, err)
	}
	if err := o.Peers.Validate(); err != nil {
		return err
	}
	if o.Deployment == "" {
		return fmt.Errorf("--deployment is empty, must be the name of the manager's Deployment, e.g. --deployment=%s", admission.ManagerAccount)
	}
	for _, conditionType := range o.Conditions {
		if conditionType == "" || slices.Contains(admission.KubernetesConditions, conditionType) {
			return fmt.Errorf("--conditions has %q, must have types that a reporter reports, and not Kubernetes itself, e.g. --conditions=example.com/NetworkReady", conditionType)
		}
	}
	if o.SettleTime < 0 {
		return fmt.Errorf("--policy-settle-time is %v, must not be negative, e.g. --policy-settle-time=5s", o.SettleTime)
	}
	if o.Timeout <= o.SettleTime {
		return fmt.Errorf("--timeout is %v, must be longer than --policy-settle-time (%v), e.g. --timeout=4m", o.Timeout, o.SettleTime)
	}
	return nil
}

// complete finds out what was not given.
func (o *Options) complete() (*rest.Config, error) {
	if o.Namespace == "" {
		namespace, err := program.InClusterNamespace("--namespace")
		if err != nil {
			return nil, err
		}
		o.Namespace = namespace
	}
	config, err := o.Config("readygate-cleanup")
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the API server's priority and fairness decides
	return config, nil
}

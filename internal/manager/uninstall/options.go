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

// Values of Options.Rules.
const (
	// KeepRules keeps rules for another controller.
	KeepRules = "keep"
	// DeleteRules deletes all rules.
	DeleteRules = "delete"
)

// Options configure a cleanup. NewOptions has the defaults; AddFlags lets the command line
// change them.
type Options struct {
	program.Options
	// Namespace is the namespace of the manager, the reporters, the agents and their leases. Empty: the
	// namespace of the pod that the cleanup runs in.
	Namespace string
	// Peers are namespaces in which another controller of this API may enforce the rules.
	Peers leadership.PeerNamespaces
	// Deployment is the name of the manager's Deployment.
	Deployment string
	// Reporters selects the DaemonSets of reporters, and their pods. Empty: none.
	Reporters string
	// Agents selects the DaemonSet of podgate, its pods and the leases of its agents. Empty: none.
	Agents string
	// Conditions are the types of node conditions to remove: those of the reporters.
	Conditions []string
	// Rules is KeepRules or DeleteRules.
	Rules string
	// SettleTime is how long the removal of the policies may take to reach every API server.
	SettleTime time.Duration
	// Timeout bounds the whole cleanup.
	Timeout time.Duration
	// Out is where the summary is written.
	Out io.Writer
}

// NewOptions returns the defaults.
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
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "Namespace of the manager, the reporters, the podgate agents and their leases. Empty: the namespace that the cleanup runs in.")
	o.Peers.AddFlag(flags)
	flags.StringVar(&o.Deployment, "deployment", o.Deployment, "Name of the manager's Deployment, which the cleanup scales to 0. It is not an error if it does not exist.")
	flags.StringVar(&o.Reporters, "reporters", o.Reporters, "Label selector of the reporters' DaemonSets, which the cleanup deletes, and of their pods. Empty: none.")
	flags.StringVar(&o.Agents, "agents", o.Agents, "Label selector of the podgate DaemonSet and of the agents' leases, which the cleanup deletes, and of the agents' pods. Empty: none.")
	flags.StringSliceVar(&o.Conditions, "conditions", o.Conditions, "Types of node conditions to remove from all nodes, because their reporters are removed, e.g. example.com/NetworkReady.")
	flags.StringVar(&o.Rules, "rules", o.Rules, "keep: keep the rules for another controller, without Readygate's finalizer and status. delete: delete all rules.")
	flags.DurationVar(&o.SettleTime, "policy-settle-time", o.SettleTime, "Maximum time until every API server uses the removal of the policies readygate-taint-new-nodes and readygate-gate-new-pods. The cleanup waits for this time.")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "Timeout of the whole cleanup. After it, the summary lists the steps that are not done, and the exit code is 1.")
}

// Validate names the first flag that cannot work, and a value that would.
func (o *Options) Validate() error {
	if o.Rules != KeepRules && o.Rules != DeleteRules {
		return fmt.Errorf("--rules is %q, must be keep or delete, e.g. --rules=keep", o.Rules)
	}
	if _, err := labels.Parse(o.Reporters); err != nil {
		return fmt.Errorf("--reporters is %q, must be a label selector, e.g. --reporters=app.kubernetes.io/component=reporter: %w", o.Reporters, err)
	}
	if _, err := labels.Parse(o.Agents); err != nil {
		return fmt.Errorf("--agents is %q, must be a label selector, e.g. --agents=app.kubernetes.io/component=podgate: %w", o.Agents, err)
	}
	if err := o.Peers.Validate(); err != nil {
		return err
	}
	if o.Deployment == "" {
		return fmt.Errorf("--deployment is empty, must be the name of the manager's Deployment, e.g. --deployment=%s", admission.ManagerAccount)
	}
	for _, conditionType := range o.Conditions {
		if conditionType == "" || slices.Contains(admission.KubernetesConditions, conditionType) {
			return fmt.Errorf("--conditions has %q, must be types that a reporter sets, not those of Kubernetes, e.g. --conditions=example.com/NetworkReady", conditionType)
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

// complete sets the namespace if it is empty, and returns the client configuration.
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
	config.QPS = -1 // API Priority and Fairness of the API server applies
	return config, nil
}

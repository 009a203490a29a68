package manager

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// peersFlag is a flag of the manager and of the cleanup: both must wait for the same controllers.
const peersFlag = "leader-election-peer-namespaces"

// PeerNamespaces are namespaces in which another controller of this API may run. A live lease of this
// API there, or in the manager's own namespace, keeps the manager from leading and the cleanup from changing
// nodes and rules. A lease elsewhere does not: every tenant that may write leases could stop the manager.
type PeerNamespaces []string

// DefaultPeerNamespaces is where kubernetes-sigs/node-readiness-controller runs.
func DefaultPeerNamespaces() PeerNamespaces { return PeerNamespaces{v1alpha1.OtherNamespace} }

// AddFlag adds the flag, with the current value as its default.
func (p *PeerNamespaces) AddFlag(flags *pflag.FlagSet) {
	flags.StringSliceVar((*[]string)(p), peersFlag, *p, "Namespaces, in addition to the manager's own, in which a live lease "+v1alpha1.LeaseName+
		" of another controller of this API keeps the manager from leading. Name only namespaces in which tenants cannot write leases. Empty: none.")
}

// Validate names the flag, the first value that is not the name of a namespace, and a valid one.
func (p PeerNamespaces) Validate() error {
	for _, namespace := range p {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return fmt.Errorf("--%s has %q, must be names of namespaces, e.g. --%s=%s: %s", peersFlag, namespace, peersFlag, v1alpha1.OtherNamespace, strings.Join(problems, "; "))
		}
	}
	return nil
}

package leadership

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/text"
)

// peersFlag is a flag of the manager and of its cleanup: both must wait for the same controllers.
const peersFlag = "leader-election-peer-namespaces"

// PeerNamespaces are namespaces in which another controller of this API may run. A live lease of this API there,
// or in the manager's own namespace, keeps the manager from leading and the cleanup from changing nodes and
// rules. A lease elsewhere does not: every tenant that may write leases could stop the manager.
type PeerNamespaces []string

// DefaultPeerNamespaces is the namespace of kubernetes-sigs/node-readiness-controller.
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
			return fmt.Errorf("--%s has %q, must be a list of namespaces, e.g. --%s=%s: %s", peersFlag, namespace, peersFlag, v1alpha1.OtherNamespace, strings.Join(problems, "; "))
		}
	}
	return nil
}

// unreleasedWindow is how long after its last renewal, by the clock of its holder, an unreleased lease of a peer
// makes the next leader wait for writes of that peer.
const unreleasedWindow = 10 * time.Minute

// maxLeaseDuration limits the lease duration of a peer, whatever its lease contains.
const maxLeaseDuration = time.Minute

// maxHolder is the maximum length of a holder in texts. The API server does not limit it.
const maxHolder = 256

// peerLeases finds leaders of this API in peer namespaces. Leases are namespaced, so a controller with a lease of
// the same name in another namespace and this one do not exclude each other.
type peerLeases struct {
	client     coordinationclient.LeasesGetter
	namespaces []string
	clock      clock.PassiveClock
	seen       map[string]observation
	// unreleased is true if a peer did not release its lease within the unreleasedWindow.
	unreleased bool
}

// peer is a leader in a peer namespace that may be alive.
type peer struct {
	namespace string
	// text names its holder and lease.
	text string
	// renews is true if it has renewed its lease since it was first observed.
	renews bool
}

// observation is a lease as it was when it last changed. A lease is live if it changes, because its times are
// those of another clock.
type observation struct {
	holder string
	renew  time.Time
	at     time.Time
	renews bool // it changed after it was first observed
}

// next returns the observation after another read, and whether the lease has changed since.
func (o observation) next(holder string, renew, now time.Time) (observation, bool) {
	if o.holder == holder && o.renew.Equal(renew) && !o.at.IsZero() {
		return o, false
	}
	changed := !o.at.IsZero()
	return observation{holder: holder, renew: renew, at: now, renews: changed}, changed
}

// leader returns a leader in a peer namespace that may be alive; nil if there is none.
func (p *peerLeases) leader(ctx context.Context) (*peer, error) {
	p.unreleased = false
	for _, namespace := range p.namespaces {
		// A LIST, because the role allows only that: it has one verb, for this name, in all namespaces.
		list, err := p.client.Leases(namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, v1alpha1.LeaseName).String(),
		})
		if err != nil {
			return nil, fmt.Errorf("listing leases of other controllers of this API in namespace %s: %w", namespace, err)
		}
		for i := range list.Items {
			lease := &list.Items[i]
			renew := ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time
			p.unreleased = p.unreleased || ptr.Deref(lease.Spec.HolderIdentity, "") != "" && p.clock.Since(renew) < unreleasedWindow
			if p.alive(lease) {
				description := fmt.Sprintf("%s (lease %s/%s)", text.Cut(*lease.Spec.HolderIdentity, maxHolder), namespace, lease.Name)
				return &peer{namespace: namespace, text: description, renews: p.seen[namespace].renews}, nil
			}
		}
	}
	return nil, nil
}

func (p *peerLeases) alive(lease *coordinationv1.Lease) bool {
	renew := ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time
	seen, _ := p.seen[lease.Namespace].next(ptr.Deref(lease.Spec.HolderIdentity, ""), renew, p.clock.Now())
	if p.seen == nil {
		p.seen = map[string]observation{}
	}
	p.seen[lease.Namespace] = seen
	duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, int32(LeaseDuration.Seconds()))) * time.Second
	return seen.holder != "" && p.clock.Since(seen.at) < min(duration, maxLeaseDuration)
}

package leadership

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

const (
	// pollInterval is the time between two LISTs. A LIST is used instead of a watch because its cost does
	// not grow with the rate at which tenants renew their leases.
	pollInterval = time.Minute

	// secondPoll is the time between the first two LISTs. A lease is live if it changed between two of
	// them, and controllers renew theirs more often than this.
	secondPoll = 15 * time.Second

	// listTimeout is the timeout of one LIST.
	listTimeout = 30 * time.Second

	// liveFor is how long a lease counts as live after its last change.
	liveFor = 2 * pollInterval

	// publishInterval is the minimum time between two changes of the condition, and so between two status
	// writes per rule, however many leases appear and disappear meanwhile.
	publishInterval = 5 * time.Minute

	// maxLeases is the maximum number of leases that one LIST reads.
	maxLeases = 100

	// maxNamed is the maximum number of namespaces that the condition and the log name.
	maxNamed = 5
)

// Others holds the namespaces in which a lease of this API was live at the last LIST, other than the
// manager's own. It is safe for concurrent use.
type Others struct {
	clock clock.PassiveClock
	own   string

	mu          sync.Mutex
	seen        map[string]observed
	live        int
	published   []string
	publishedAt time.Time
	onChange    []func()
}

// observed is one lease: its resource version, and when that was last found to have changed.
type observed struct {
	version string
	changed time.Time
}

// NewOthers observes all namespaces but own, which is that of the manager's own lease; empty if it has none.
func NewOthers(clock clock.PassiveClock, own string) *Others {
	return &Others{clock: clock, own: own}
}

// OnChange calls f whenever Condition changes. f must not block.
func (o *Others) OnChange(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.onChange = append(o.onChange, f)
}

// Live is the number of namespaces with a live lease, at most maxLeases.
func (o *Others) Live() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.live
}

// Condition is the condition for every rule; nil if no other lease is live. Its message names namespaces
// only: the holder is text of the account that writes the lease. The manager's own namespace is one of them,
// so that two managers write the same message and do not overwrite each other's status forever.
func (o *Others) Condition() *metav1.Condition {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.published) == 0 {
		return nil
	}
	return &metav1.Condition{
		Type: v1alpha1.ConditionSoleController, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonOtherLease,
		Message: fmt.Sprintf("more than one lease %s is renewed, in namespaces %s; readygate-manager still enforces the rule. "+
			"If another controller of this API runs in one of these namespaces, stop it: both controllers write the same taints. Otherwise delete the lease, except in the namespace of readygate-manager. "+
			"List the leases: kubectl get leases -A --field-selector metadata.name=%s", v1alpha1.LeaseName, o.named(o.published), v1alpha1.LeaseName),
	}
}

// Waiting is the condition for every rule while the manager waits for the lease in this namespace.
func Waiting(namespace string) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionSoleController, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWaitingForLease,
		Message: fmt.Sprintf("readygate-manager does not enforce the rule: it waits for lease %s/%s, which another controller renews. "+
			"Stop that controller, or remove the namespace from --leader-election-peer-namespaces (manager.peerNamespaces in the chart)",
			namespace, v1alpha1.LeaseName),
	}
}

// Run polls until the context ends.
func (o *Others) Run(ctx context.Context, live client.Reader) {
	failed := false
	for pause := secondPoll; ; pause = pollInterval {
		versions, err := o.list(ctx, live)
		switch {
		case err == nil:
			failed = false
			o.observe(versions)
		case ctx.Err() == nil && !failed:
			failed = true
			log.Error(err, "Listing leases of other controllers failed; the condition "+v1alpha1.ConditionSoleController+" is not updated until it succeeds")
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// list returns the resource version of the lease in each namespace. It reads metadata only, of a limited
// number of leases: tenants decide how large and how many they are.
func (o *Others) list(ctx context.Context, live client.Reader) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("LeaseList"))
	if err := live.List(ctx, &list, client.MatchingFields{metav1.ObjectNameField: v1alpha1.LeaseName}, client.Limit(maxLeases)); err != nil {
		return nil, err
	}
	versions := make(map[string]string, len(list.Items))
	for i := range list.Items {
		if namespace := list.Items[i].Namespace; namespace != o.own {
			versions[namespace] = list.Items[i].ResourceVersion
		}
	}
	return versions, nil
}

// observe compares the resource versions with the last ones. Times in a lease are not compared: clocks
// differ.
func (o *Others) observe(versions map[string]string) {
	o.mu.Lock()
	now, seen := o.clock.Now(), make(map[string]observed, len(versions))
	var live []string
	for namespace, version := range versions {
		lease, known := o.seen[namespace]
		if known && lease.version != version {
			lease.changed = now
		}
		lease.version = version
		seen[namespace] = lease
		if !lease.changed.IsZero() && now.Sub(lease.changed) < liveFor {
			live = append(live, namespace)
		}
	}
	slices.Sort(live)
	o.seen, o.live = seen, len(live)
	publish := !slices.Equal(live, o.published) && (o.publishedAt.IsZero() || now.Sub(o.publishedAt) >= publishInterval)
	if publish {
		o.published, o.publishedAt = live, now
	}
	listeners := o.onChange
	o.mu.Unlock()
	if !publish {
		return
	}
	if len(live) > 0 {
		log.Info("Another controller may enforce the rules: its lease is renewed", "lease", v1alpha1.LeaseName, "namespaces", o.named(live))
	} else {
		log.Info("No lease of another controller is renewed anymore", "lease", v1alpha1.LeaseName)
	}
	for _, changed := range listeners {
		changed()
	}
}

// named joins the namespaces with the manager's own, and counts those that are more than maxNamed.
func (o *Others) named(live []string) string {
	all := slices.Clone(live)
	if o.own != "" {
		all = append(all, o.own)
	}
	slices.Sort(all)
	text := strings.Join(all[:min(maxNamed, len(all))], ", ")
	if more := len(all) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// RegisterMetrics registers the metrics: how many other leases are live, and whether the manager waits for
// one. They have no labels, because tenants choose the namespaces.
func RegisterMetrics(registerer prometheus.Registerer, others *Others, waits func() bool) {
	registerer.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "node_readiness_other_leases",
			Help: "Namespaces, other than the manager's own, in which a lease of this API was renewed in the last two minutes. At most 100; only the leader counts.",
		}, func() float64 { return float64(others.Live()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "node_readiness_waiting_for_lease",
			Help: "1 while the manager does not lead because a lease of this API is renewed in a peer namespace, else 0.",
		}, func() float64 {
			if waits() {
				return 1
			}
			return 0
		}))
}

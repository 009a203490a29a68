package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/note"
	"github.com/readygate/readygate/internal/tenure"
)

// Times of the election. A standby asks every retryPeriod (to 2.2 times that), which bounds
// the time without a leader after a clean stop; leaseDuration bounds it after a crash.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = time.Second
)

// neighbours looks for leaders of this API in peer namespaces. Leases are namespaced, so
// another controller with a lease of the same name elsewhere would not exclude us, nor we it.
// Other namespaces are not read: every tenant may create a lease in its own.
type neighbours struct {
	leases     coordinationclient.LeasesGetter
	namespaces []string
	clock      clock.PassiveClock
	seen       map[string]sighting
	// haunted says that one of them did not give its lease back, not long ago.
	haunted bool
}

// haunting is for how long after its last renewal, by its own clock, a leader elsewhere that did not
// give its lease back is feared.
const haunting = 10 * time.Minute

// maxLease is the longest time for which a silent lease of somebody else is believed,
// whatever it says of itself.
const maxLease = time.Minute

// sighting is a lease as it was when it last changed. Whether a lease is alive is told from
// its changes, not from its times: clocks differ.
type sighting struct {
	holder string
	renew  time.Time
	at     time.Time
	lives  bool // has changed before our eyes
}

// next is the sighting after looking again, and whether the lease has changed since.
func (s sighting) next(holder string, renew, now time.Time) (sighting, bool) {
	if s.holder == holder && s.renew.Equal(renew) && !s.at.IsZero() {
		return s, false
	}
	changed := !s.at.IsZero()
	return sighting{holder: holder, renew: renew, at: now, lives: changed}, changed
}

// neighbour is a leader in a peer namespace that may be alive.
type neighbour struct {
	namespace string
	// text names its holder and lease.
	text string
	// renews says that it has renewed its lease since it was first seen.
	renews bool
}

// maxHolder is the maximum length of a holder in texts. The API server does not limit it.
const maxHolder = 256

// leader is a leader in a peer namespace that may be alive; nil if there is none.
func (n *neighbours) leader(ctx context.Context) (*neighbour, error) {
	n.haunted = false
	for _, namespace := range n.namespaces {
		// A LIST, because the role allows only that: it has one verb, for this name, in all namespaces.
		list, err := n.leases.Leases(namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, v1alpha1.LeaseName).String(),
		})
		if err != nil {
			return nil, fmt.Errorf("looking for other controllers of this API in namespace %s: %w", namespace, err)
		}
		for i := range list.Items {
			lease := &list.Items[i]
			renew := ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time
			n.haunted = n.haunted || ptr.Deref(lease.Spec.HolderIdentity, "") != "" && n.clock.Since(renew) < haunting
			if n.alive(lease) {
				text := fmt.Sprintf("%s (lease %s/%s)", note.Cut(*lease.Spec.HolderIdentity, maxHolder), namespace, lease.Name)
				return &neighbour{namespace: namespace, text: text, renews: n.seen[namespace].lives}, nil
			}
		}
	}
	return nil, nil
}

func (n *neighbours) alive(lease *coordinationv1.Lease) bool {
	renew := ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time
	seen, _ := n.seen[lease.Namespace].next(ptr.Deref(lease.Spec.HolderIdentity, ""), renew, n.clock.Now())
	if n.seen == nil {
		n.seen = map[string]sighting{}
	}
	n.seen[lease.Namespace] = seen
	lasts := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, int32(leaseDuration.Seconds()))) * time.Second
	return seen.holder != "" && n.clock.Since(seen.at) < min(lasts, maxLease)
}

// exclusiveLock is a lease that can be acquired only while no peer namespace has a live
// leader of this API. It knows whether the question of leadership is settled. The election
// uses it from one goroutine; anybody may ask settled at any time, also during a request.
type exclusiveLock struct {
	resourcelock.Interface
	neighbours *neighbours
	// tenure is for how long this process is sure to have the lease.
	tenure *tenure.Tenure
	held   bool
	seen   sighting
	// feared says that whoever had the lease before us did not give it back.
	feared bool

	// outdone is told of a leader in another namespace that has proved to be alive; nil: wait
	// until it stops.
	outdone func(other string)

	mu     sync.Mutex
	leader string
	waits  string
	// waitsIn is the namespace of the lease that it waits for, once that was renewed; empty otherwise.
	waitsIn string
}

// newLock makes the lock in the namespace, or one that only this process knows if the
// namespace is empty: that excludes leaders in peer namespaces, but not a second manager like this.
// The request timeout is that of the API server.
func newLock(config *rest.Config, namespace string, peers []string, requestTimeout time.Duration) (*exclusiveLock, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = renewDeadline / 2 // one hung request must not cost the lease
	client, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	identity := host + "_" + string(uuid.NewUUID())
	lock := &exclusiveLock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.LeaseName},
			Client:     client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		neighbours: &neighbours{leases: client, namespaces: without(peers, namespace), clock: clock.RealClock{}},
		tenure:     tenure.New(clock.RealClock{}, renewDeadline, requestTimeout),
	}
	if namespace == "" {
		lock.Interface = &memoryLock{identity: identity}
	}
	return lock, nil
}

// Get reads the lease and notes who leads: a holder that renews it. A lease that was only
// seen once, or has not changed for long, may be that of a dead one.
func (l *exclusiveLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err != nil {
		return record, raw, err
	}
	var renewed bool
	l.seen, renewed = l.seen.next(record.HolderIdentity, record.RenewTime.Time, l.neighbours.clock.Now())
	switch l.seen.holder {
	case "":
		l.feared = false
	case l.Identity(): // also by a write of which we heard nothing: who was before us was before us
	default:
		l.feared = true
	}
	switch {
	case l.seen.holder == "" || l.neighbours.clock.Since(l.seen.at) > leaseDuration:
		l.setLeader("")
	case renewed:
		l.setLeader(l.seen.holder)
	}
	return record, raw, nil
}

// Create makes the lease, unless a peer namespace has a leader.
func (l *exclusiveLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update acquires, renews or releases the lease; it does not acquire it while a peer
// namespace has a leader.
func (l *exclusiveLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l *exclusiveLock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, do func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	if record.HolderIdentity != l.Identity() {
		return l.release(ctx, record, do)
	}
	if !l.held {
		if err := l.alone(ctx); err != nil {
			return err
		}
	}
	sent := l.neighbours.clock.Now()
	if err := do(ctx, record); err != nil {
		return err
	}
	if !l.held {
		// Another may have acquired its own lease at the same moment. Both look again after
		// writing, so at least one sees the other and steps back.
		if err := l.alone(ctx); err != nil {
			if !l.feared { // else nobody may believe that it was given back: it runs out
				record.HolderIdentity, record.LeaseDurationSeconds = "", 1
				_ = l.Interface.Update(ctx, record) // if it fails, it runs out, too
			}
			return err
		}
		if l.feared || l.neighbours.haunted {
			l.tenure.Succeed(l.neighbours.clock.Now())
		}
		l.feared = false
	}
	l.held = true
	l.tenure.Renew(sent)
	l.setLeader(record.HolderIdentity)
	return nil
}

// release gives the lease back, if it is ours and nothing that this process wrote can still happen.
// Else it runs out, and whoever takes it then waits.
func (l *exclusiveLock) release(ctx context.Context, record resourcelock.LeaderElectionRecord, do func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	l.held = false
	l.tenure.End()
	switch {
	case l.seen.holder != "" && l.seen.holder != l.Identity():
		return fmt.Errorf("not given back: the lease is that of %s", l.seen.holder)
	case !l.tenure.Clean():
		return errors.New("not given back: a write got no answer yet; the lease runs out")
	}
	return do(ctx, record)
}

func (l *exclusiveLock) setLeader(identity string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leader = identity
	if identity != "" { // somebody leads with our lease: nobody else can be waited for
		l.waits, l.waitsIn = "", ""
	}
}

// alone fails while a peer namespace has a leader.
func (l *exclusiveLock) alone(ctx context.Context) error {
	other, err := l.neighbours.leader(ctx)
	if err != nil {
		return err
	}
	if other == nil {
		l.setWaits("", "")
		return nil
	}
	in := ""
	if other.renews {
		in = other.namespace
	}
	news := l.setWaits(other.text, in)
	switch {
	case l.outdone != nil && other.renews:
		l.outdone(other.text)
	case l.outdone == nil && news:
		log.Info("Waiting: another controller enforces these rules; stop it to let this one take over", "leader", other.text)
	}
	return fmt.Errorf("another controller of this API is active: %s", other.text)
}

// setWaits returns whether the leader that it waits for has changed.
func (l *exclusiveLock) setWaits(leader, in string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	news := leader != l.waits
	l.waits, l.waitsIn = leader, in
	return news
}

// waitingIn is the namespace of the live lease that the manager waits for; empty if it does not wait.
func (l *exclusiveLock) waitingIn() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waitsIn
}

// without is the namespaces but for one, each once.
func without(namespaces []string, own string) []string {
	others := slices.Clone(namespaces)
	slices.Sort(others)
	return slices.DeleteFunc(slices.Compact(others), func(namespace string) bool { return namespace == own })
}

// settled fails until it is known who leads: this process or another one with this lease.
func (l *exclusiveLock) settled() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.waits != "":
		return fmt.Errorf("waiting until another controller of this API stops: %s", l.waits)
	case l.leader == "":
		return errors.New("no leader is elected yet")
	default:
		return nil
	}
}

// InClusterNamespace is the namespace of the pod that this process runs in. The flag is the one
// to use instead.
func InClusterNamespace(flag string) (string, error) {
	data, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return "", fmt.Errorf("%s is needed outside of a cluster, e.g. %s=readygate-system: %w", flag, flag, err)
	}
	return strings.TrimSpace(string(data)), nil
}

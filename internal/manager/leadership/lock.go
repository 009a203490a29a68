package leadership

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Times of the leader election. A standby tries to acquire the lease every RetryPeriod (to 2.2 times that),
// which bounds the time without a leader after a clean stop; LeaseDuration bounds it after a crash.
const (
	LeaseDuration = 15 * time.Second
	RenewDeadline = 10 * time.Second
	RetryPeriod   = time.Second
)

const (
	// DefaultRequestTimeout is the default --request-timeout of the API server.
	DefaultRequestTimeout = time.Minute
	// MaxRequestTimeout is half of the time for which an unreleased lease of a peer is remembered.
	MaxRequestTimeout = unreleasedWindow / 2
)

// Lock is a lease that can be acquired only while no other controller of this API holds a live lease in a peer
// namespace. The leader election calls it from one goroutine; Settled and WaitingIn are safe for concurrent use.
type Lock struct {
	resourcelock.Interface
	// Fence rejects writes while this process may not hold the lease.
	Fence *Fence

	peers *peerLeases
	held  bool
	seen  observation
	// unreleased is true if the previous holder did not release the lease.
	unreleased bool

	// onPeer is called with a peer that has renewed its lease; nil: wait until the peer stops.
	onPeer func(peer string)

	mu     sync.Mutex
	leader string
	// waitsFor describes the peer that the lock waits for. waitsIn is the namespace of its lease once the peer
	// has renewed it, and empty before.
	waitsFor string
	waitsIn  string
}

// NewLock returns the lock of the namespace. If the namespace is empty, the lock is in memory: it excludes
// leaders in peer namespaces, but not a second manager without a lease. The request timeout is the
// --request-timeout of the API server.
func NewLock(config *rest.Config, namespace string, peers []string, requestTimeout time.Duration) (*Lock, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = RenewDeadline / 2 // one request without a response must not cost the lease
	client, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	identity := host + "_" + string(uuid.NewUUID())
	lock := &Lock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.LeaseName},
			Client:     client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		peers: &peerLeases{client: client, namespaces: without(peers, namespace), clock: clock.RealClock{}},
		Fence: NewFence(clock.RealClock{}, RenewDeadline, requestTimeout),
	}
	if namespace == "" {
		lock.Interface = &memoryLock{identity: identity}
	}
	return lock, nil
}

// Get reads the lease and records the leader: a holder that renews it. The holder of a lease that was seen only
// once, or that has not changed for the lease duration, may be gone.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err != nil {
		return record, raw, err
	}
	var renewed bool
	l.seen, renewed = l.seen.next(record.HolderIdentity, record.RenewTime.Time, l.peers.clock.Now())
	switch l.seen.holder {
	case "":
		l.unreleased = false
	case l.Identity(): // perhaps acquired by a write without a response: the holder before it still counts
	default:
		l.unreleased = true
	}
	switch {
	case l.seen.holder == "" || l.peers.clock.Since(l.seen.at) > LeaseDuration:
		l.setLeader("")
	case renewed:
		l.setLeader(l.seen.holder)
	}
	return record, raw, nil
}

// Create creates the lease, unless a peer leads.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update acquires, renews or releases the lease. It does not acquire the lease while a peer leads.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l *Lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, do func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	if record.HolderIdentity != l.Identity() {
		return l.release(ctx, record, do)
	}
	if !l.held {
		if err := l.checkPeers(ctx); err != nil {
			return err
		}
	}
	sent := l.peers.clock.Now()
	if err := do(ctx, record); err != nil {
		return err
	}
	if !l.held {
		// A peer may have acquired its own lease at the same moment. Both check again after the write, so at
		// least one of them sees the other and steps back.
		if err := l.checkPeers(ctx); err != nil {
			if !l.unreleased { // otherwise the lease must expire: a released one would hide the previous holder
				record.HolderIdentity, record.LeaseDurationSeconds = "", 1
				_ = l.Interface.Update(ctx, record) // if this fails, the lease expires
			}
			return err
		}
		if l.unreleased || l.peers.unreleased {
			l.Fence.TakeOver(l.peers.clock.Now())
		}
		l.unreleased = false
	}
	l.held = true
	l.Fence.Renew(sent)
	l.setLeader(record.HolderIdentity)
	return nil
}

// release releases the lease if this process holds it and none of its writes can still take effect. Otherwise
// the lease expires, and the next leader waits.
func (l *Lock) release(ctx context.Context, record resourcelock.LeaderElectionRecord, do func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	l.held = false
	l.Fence.Close()
	switch {
	case l.seen.holder != "" && l.seen.holder != l.Identity():
		return fmt.Errorf("lease not released: %s holds it", l.seen.holder)
	case !l.Fence.Idle():
		return errors.New("lease not released: a write has no response yet; the lease expires instead")
	}
	return do(ctx, record)
}

func (l *Lock) setLeader(identity string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leader = identity
	if identity != "" { // a holder of this lease leads, so the lock waits for no peer
		l.waitsFor, l.waitsIn = "", ""
	}
}

// checkPeers returns an error while a peer leads.
func (l *Lock) checkPeers(ctx context.Context) error {
	peer, err := l.peers.leader(ctx)
	if err != nil {
		return err
	}
	if peer == nil {
		l.setWaits("", "")
		return nil
	}
	in := ""
	if peer.renews {
		in = peer.namespace
	}
	changed := l.setWaits(peer.text, in)
	switch {
	case l.onPeer != nil && peer.renews:
		l.onPeer(peer.text)
	case l.onPeer == nil && changed:
		log.Info("Waiting: another controller enforces the rules; stop that controller so that this manager can lead", "leader", peer.text)
	}
	return fmt.Errorf("another controller of this API is active: %s", peer.text)
}

// setWaits returns whether the peer that the lock waits for has changed.
func (l *Lock) setWaits(peer, in string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := peer != l.waitsFor
	l.waitsFor, l.waitsIn = peer, in
	return changed
}

// WaitingIn returns the namespace of the live lease that the manager waits for; empty if it does not wait.
func (l *Lock) WaitingIn() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waitsIn
}

// Settled returns an error until a leader is known: this process or another one that holds this lease.
func (l *Lock) Settled() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.waitsFor != "":
		return fmt.Errorf("waiting until another controller of this API stops: %s", l.waitsFor)
	case l.leader == "":
		return errors.New("no leader is elected yet")
	default:
		return nil
	}
}

// without returns the namespaces except one, without duplicates.
func without(namespaces []string, own string) []string {
	peers := slices.Clone(namespaces)
	slices.Sort(peers)
	return slices.DeleteFunc(slices.Compact(peers), func(namespace string) bool { return namespace == own })
}

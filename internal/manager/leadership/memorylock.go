package leadership

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// memoryLock is a lock in memory, for a manager without leader election. With it, such a manager uses the same code as
// with a lease, and serves its health endpoints while it waits.
type memoryLock struct {
	identity string
	record   *resourcelock.LeaderElectionRecord
}

// Get returns the record.
func (m *memoryLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if m.record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, v1alpha1.LeaseName)
	}
	return m.record, []byte(m.record.RenewTime.String()), nil
}

// Create writes the record.
func (m *memoryLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return m.Update(ctx, record)
}

// Update writes the record.
func (m *memoryLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	m.record = &record
	return nil
}

// RecordEvent does nothing: the lock is no object of the API.
func (m *memoryLock) RecordEvent(string) {}

// Identity returns the identity of this process.
func (m *memoryLock) Identity() string { return m.identity }

// Describe names the lock in logs.
func (m *memoryLock) Describe() string { return "memory" }

package leadership

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// memoryLock is a lock that only this process knows, for a manager that runs alone. With it
// such a manager goes the same way as others, and has its health endpoints while it waits.
type memoryLock struct {
	identity string
	record   *resourcelock.LeaderElectionRecord
}

// Get returns what was written last.
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

// RecordEvent does nothing: there is no object to tell of.
func (m *memoryLock) RecordEvent(string) {}

// Identity is who holds the lock.
func (m *memoryLock) Identity() string { return m.identity }

// Describe names the lock in logs.
func (m *memoryLock) Describe() string { return "memory" }

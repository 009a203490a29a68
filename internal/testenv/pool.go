package testenv

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"
)

// idle holds control planes that no test uses at the moment, and that were reset. At most as many start as tests
// of the package run at once.
var idle struct {
	mu       sync.Mutex
	clusters []*Cluster
}

// StartCluster returns a control plane that no other test uses at the same time, with nothing on it but the CRDs
// and the manager's role. It starts one, or takes one that an earlier test
// of the package no longer needs.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := takeIdle()
	if c == nil {
		var err error
		if c, err = NewCluster(t.Context()); err != nil {
			t.Fatalf("starting a control plane: %v", err)
		}
		if c.installed, err = c.stored(t.Context()); err != nil {
			t.Fatal(errors.Join(err, c.Stop()))
		}
	}
	t.Cleanup(func() { c.giveBack(t) })
	return c
}

// StartOwnCluster starts a control plane for this test only, with other API server flags.
func StartOwnCluster(t testing.TB, apiServerArgs ...string) *Cluster {
	t.Helper()
	c, err := NewCluster(t.Context(), apiServerArgs...)
	if err != nil {
		t.Fatalf("starting a control plane: %v", err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	return c
}

func takeIdle() *Cluster {
	idle.mu.Lock()
	defer idle.mu.Unlock()
	if len(idle.clusters) == 0 {
		return nil
	}
	c := idle.clusters[len(idle.clusters)-1]
	idle.clusters = idle.clusters[:len(idle.clusters)-1]
	return c
}

// giveBack removes all objects that a test created, and keeps the control plane for the next test. It
// stops the control plane if that is not possible, and after a test that failed.
func (c *Cluster) giveBack(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if t.Failed() {
		_ = c.Stop()
		return
	}
	if err := errors.Join(c.StopOthers(), c.reset(ctx)); err != nil {
		t.Logf("the control plane is not used by other tests: %v", err)
		_ = c.Stop()
		return
	}
	log, err := os.Stat(c.AuditLog())
	if err != nil {
		_ = c.Stop()
		return
	}
	c.auditStart = log.Size()
	clear(c.tails)
	idle.mu.Lock()
	defer idle.mu.Unlock()
	idle.clusters = append(idle.clusters, c)
}

func stopIdle() {
	idle.mu.Lock()
	defer idle.mu.Unlock()
	for _, c := range idle.clusters {
		_ = c.Stop()
	}
	idle.clusters = nil
}

package cni

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
)

// Run attaches a canary, looks whether it has an address and an answer, and takes it back,
// whatever happened before. First it takes back what an earlier run left; while that fails there
// is no new canary, so that at most one is ever left.
//
// The error is an *Error, or that of ctx if it was cancelled. Give ctx a deadline: it is all the
// time that the plugins have for ADD. Taking back has 20 s of its own.
func (c *Canary) Run(ctx context.Context) error {
	if err := c.Validate(); err != nil {
		return err
	}
	s, err := openState(ctx, c.stateDir())
	if err != nil {
		return err
	}
	defer s.close()
	if err := c.sweep(ctx, s); err != nil {
		return err
	}
	list, err := c.load()
	if err != nil {
		return err
	}
	r, err := s.begin(list.Bytes)
	if err != nil {
		return err
	}
	err = c.try(ctx, list, r)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if left := c.cleanUp(after, s, r); err == nil {
		err = left
	}
	return err
}

// try is the part of a run that may stop anywhere.
func (c *Canary) try(ctx context.Context, list *libcni.NetworkConfigList, r *record) error {
	if err := makeNetNS(r.NetNS); err != nil {
		return err
	}
	result, err := c.libcni().AddNetworkList(ctx, list, r.runtime())
	if err != nil {
		return pluginFailure(ctx, NotConnected, "ADD", err)
	}
	r.added = true
	targets, err := c.targets(ctx, result)
	if err != nil {
		return err
	}
	return inNetNS(r.NetNS, func() error {
		index, err := addressed(r.IfName)
		if err != nil {
			return err
		}
		for _, t := range targets {
			if err := t.await(ctx, index); err != nil {
				return err
			}
		}
		return nil
	})
}

// cleanUp undoes a run: processes that may still work on it, what the plugins gave, the
// namespace, and last the record, so that a step that fails is done again.
func (c *Canary) cleanUp(ctx context.Context, s *state, r *record) error {
	if !r.added {
		endPlugins(ctx, r.ID)
	}
	list, err := libcni.NetworkConfFromBytes(r.Config)
	if err != nil {
		return failure(DelFailed, "%s is not a valid record of a canary: remove it", s.file(r.ID))
	}
	rt := r.runtime()
	if !isNetNS(r.NetNS) {
		rt.NetNS = "" // a reboot, or a run that did not come so far; plugins fail on a dead path
	}
	if err := c.libcni().DelNetworkList(ctx, list, rt); err != nil {
		return pluginFailure(ctx, DelFailed, "DEL", err)
	}
	if err := removeNetNS(r.NetNS); err != nil {
		return scratchFailed("removing the canary's namespace", err)
	}
	return s.end(r.ID)
}

// sweep takes back what killed runs left, until the end of ctx. With nothing left it does nothing.
func (c *Canary) sweep(ctx context.Context, s *state) error {
	records, err := s.left()
	var failures []error
	for _, r := range records {
		failures = append(failures, c.cleanUp(ctx, s, r))
	}
	for _, failed := range append(failures, err) {
		if failed != nil {
			return failed // one error is enough: the other records are tried again too
		}
	}
	return s.tidy()
}

func (c *Canary) libcni() *libcni.CNIConfig {
	return libcni.NewCNIConfigWithCacheDir(c.binDirs(), filepath.Join(c.stateDir(), cacheDir), &runner{})
}

// targets are the addresses that must respond.
func (c *Canary) targets(ctx context.Context, result types.Result) ([]target, error) {
	if c.Target != "" {
		t, err := parseTarget(ctx, c.Target)
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, fmt.Errorf("looking up the target: %w", ctx.Err())
		}
		return []target{t}, err
	}
	attached, err := types100.NewResultFromResult(result)
	if err != nil {
		return nil, failure(NotConnected, "ADD gave a result that cannot be read: %s", scrub(err.Error()))
	}
	return gateways(attached), nil
}

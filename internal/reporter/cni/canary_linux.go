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

// Run attaches a canary, checks that it has an address and gets a response, and always removes it.
// First it removes the canary of an earlier run; while that fails it creates no new
// one, so that at most one canary is left over.
//
// The error is an *Error, or the error of ctx if it was cancelled. ctx must have a deadline: it limits
// the ADD of the plugins. The cleanup has a timeout of its own of 20 s.
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

// try is the part of a run that may fail at any step.
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

// cleanUp undoes a run: it ends running plugins, calls DEL, and removes the
// namespace and last the record, so that the next run retries a failed step.
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
		rt.NetNS = "" // after a reboot or an early failure; plugins fail on a path that is not a namespace
	}
	if err := c.libcni().DelNetworkList(ctx, list, rt); err != nil {
		return pluginFailure(ctx, DelFailed, "DEL", err)
	}
	if err := removeNetNS(r.NetNS); err != nil {
		return scratchFailed("removing the canary's namespace", err)
	}
	return s.end(r.ID)
}

// sweep removes the canaries of killed runs, until the end of ctx.
func (c *Canary) sweep(ctx context.Context, s *state) error {
	records, err := s.left()
	var failures []error
	for _, r := range records {
		failures = append(failures, c.cleanUp(ctx, s, r))
	}
	for _, failed := range append(failures, err) {
		if failed != nil {
			return failed // one error is enough: the next run retries all records
		}
	}
	return s.tidy()
}

func (c *Canary) libcni() *libcni.CNIConfig {
	return libcni.NewCNIConfigWithCacheDir(c.binDirs(), filepath.Join(c.stateDir(), cacheDir), &runner{})
}

// targets returns the addresses that must respond.
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
		return nil, failure(NotConnected, "ADD returned a result that cannot be decoded: %s", scrub(err.Error()))
	}
	return gateways(attached), nil
}

package cni

import (
	"context"
	"errors"
	"fmt"

	"github.com/readygate/readygate/internal/text"
)

// Reason is what failed, as the reason of a node condition.
type Reason string

const (
	// NoConfig means: there is no file in ConfDir, or it cannot be read. The network add-on has not
	// come up yet, or was never installed.
	NoConfig Reason = "NetworkConfigMissing"
	// BadConfig means: the first file in ConfDir is not one that a container runtime can use.
	BadConfig Reason = "NetworkConfigWrong"
	// PluginMissing means: a plugin that the configuration names is not in BinDirs, or cannot be run.
	PluginMissing Reason = "NetworkPluginMissing"
	// StatusNotReady means: a plugin returned CNI error 50, that it cannot take pods, or with 51
	// that the pods it has are cut off in part.
	StatusNotReady Reason = "NetworkNotReady"
	// StatusFailed means: a plugin gave another error, or no answer, when it was asked for its status.
	StatusFailed Reason = "NetworkStatusFailed"
	// NotConnected means: a plugin could not attach the canary to the network; or ADD succeeded, but the
	// interface is missing, down or without an address.
	NotConnected Reason = "CanaryNotConnected"
	// NoAnswer means: the canary has an address, but the gateway, or Target, does not answer it.
	NoAnswer Reason = "CanaryUnanswered"
	// DelFailed means: a plugin could not take back what it had given. It is asked again before the
	// next canary; until then there is none.
	DelFailed Reason = "CanaryNotDisconnected"
	// NotPermitted means: what the canary itself needs, its state directory or its namespace, cannot be
	// made, mostly because this process may not; or this is not Linux. It does not depend on the plugins.
	NotPermitted Reason = "CanaryNotPermitted"
	// Busy means: another canary holds the state directory. It does not depend on the plugins.
	Busy Reason = "CanaryBusy"
	// BadTarget means: Target is no address, or its host has none.
	BadTarget Reason = "CanaryTargetUnknown"
)

// maxDetail keeps the whole text of an Error below 200 bytes.
const maxDetail = 175

// Error is what failed. The same failure has the same text each time: it holds no times, random
// names or ports, so that a condition made of it does not change with every attempt.
type Error struct {
	Reason Reason
	Detail string
}

func (e *Error) Error() string { return string(e.Reason) + ": " + e.Detail }

func failure(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Detail: text.Cut(fmt.Sprintf(format, args...), maxDetail)}
}

// pluginFailure is what a verb ended with. A caller that goes away is no failure of the plugins.
func pluginFailure(ctx context.Context, reason Reason, verb string, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("running %s: %w", verb, ctx.Err())
	}
	var plugin *pluginError
	if !errors.As(err, &plugin) {
		return failure(reason, "%s failed: %s", verb, scrub(err.Error()))
	}
	return failure(reason, "%s of plugin %q %s", verb, plugin.name, plugin.what())
}

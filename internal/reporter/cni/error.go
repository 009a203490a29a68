package cni

import (
	"context"
	"errors"
	"fmt"

	"github.com/readygate/readygate/internal/text"
)

// Reason is the kind of a failure. It becomes the reason of a node condition.
type Reason string

const (
	// NoConfig means: ConfDir contains no configuration file, or it cannot be read. The network add-on
	// is not running yet, or was never installed.
	NoConfig Reason = "NetworkConfigMissing"
	// BadConfig means: a container runtime cannot use the first file in ConfDir.
	BadConfig Reason = "NetworkConfigWrong"
	// PluginMissing means: a plugin of the configuration is not in BinDirs, or is not executable.
	PluginMissing Reason = "NetworkPluginMissing"
	// StatusNotReady means: STATUS of a plugin returned CNI error 50 (cannot accept pods) or 51
	// (existing pods have limited connectivity).
	StatusNotReady Reason = "NetworkNotReady"
	// StatusFailed means: STATUS of a plugin returned another error, or did not finish.
	StatusFailed Reason = "NetworkStatusFailed"
	// NotConnected means: ADD failed; or ADD succeeded, but the
	// interface is missing, down or without an address.
	NotConnected Reason = "CanaryNotConnected"
	// NoAnswer means: the canary has an address, but the gateway, or Target, does not respond.
	NoAnswer Reason = "CanaryUnanswered"
	// DelFailed means: DEL of a plugin failed. The next run retries DEL before it creates
	// another canary.
	DelFailed Reason = "CanaryNotDisconnected"
	// NotPermitted means: the canary's state directory or network namespace cannot be created, mostly because of
	// missing privileges; or the system is not Linux. It does not depend on the plugins.
	NotPermitted Reason = "CanaryNotPermitted"
	// Busy means: another canary has locked the state directory. It does not depend on the plugins.
	Busy Reason = "CanaryBusy"
	// BadTarget means: Target is not an address, or its host cannot be resolved.
	BadTarget Reason = "CanaryTargetUnknown"
)

// maxDetail keeps the whole text of an Error below 200 bytes.
const maxDetail = 175

// Error is a failure. The same failure always has the same text: it contains no times, random
// names or ports, so that the condition does not change with every attempt.
type Error struct {
	Reason Reason
	Detail string
}

func (e *Error) Error() string { return string(e.Reason) + ": " + e.Detail }

func failure(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Detail: text.Cut(fmt.Sprintf(format, args...), maxDetail)}
}

// pluginFailure returns the failure of a verb. A cancelled context is not a failure of the plugins.
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

package cni

import (
	"context"
	"errors"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/version"
)

// Error codes of STATUS in the CNI specification.
const (
	notAvailable        = 50
	limitedConnectivity = 51
)

// Answer is the result of STATUS.
type Answer struct {
	// Network is the name of the active network; empty if there is none.
	Network string
	// Version is the cniVersion of its configuration; empty means 0.1.0.
	Version string
	// Asked is true if STATUS was called. Configurations older than CNI 1.1.0 do not support
	// it: without an error, the configuration is readable and its plugins
	// are installed.
	Asked bool
}

// Status calls the CNI verb STATUS of each plugin of the active network. Without an error all
// plugins can accept pods, or STATUS is not supported: see Answer.Asked.
//
// The error is an *Error, or the error of ctx if it was cancelled. A plugin that still runs at
// the end of ctx is killed, with its children.
func (p Plugins) Status(ctx context.Context) (Answer, error) {
	list, err := p.load()
	if list == nil {
		return Answer{}, err
	}
	answer := Answer{Network: list.Name, Version: list.CNIVersion}
	if err != nil {
		return answer, err
	}
	// libcni does not call STATUS either, but returns success.
	if answer.Asked, err = version.GreaterThanOrEqualTo(list.CNIVersion, "1.1.0"); err != nil || !answer.Asked {
		return answer, err
	}
	if err := libcni.NewCNIConfig(p.binDirs(), &runner{}).GetStatusNetworkList(ctx, list); err != nil {
		return answer, statusFailure(ctx, err)
	}
	return answer, nil
}

func statusFailure(ctx context.Context, err error) error {
	var plugin *pluginError
	if errors.As(err, &plugin) {
		switch plugin.code {
		case notAvailable:
			return failure(StatusNotReady, "plugin %q cannot accept pods: %s", plugin.name, scrub(plugin.text))
		case limitedConnectivity:
			return failure(StatusNotReady, "plugin %q has limited connectivity: %s", plugin.name, scrub(plugin.text))
		}
	}
	return pluginFailure(ctx, StatusFailed, "STATUS", err)
}

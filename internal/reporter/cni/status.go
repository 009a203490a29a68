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
	// Network is the name of the active network; empty when there is none.
	Network string
	// Version is the cniVersion of its configuration; empty means 0.1.0.
	Version string
	// Asked is whether the plugins themselves were asked. They cannot be where the
	// configuration is older than CNI 1.1.0: then no error means only that there is a readable
	// configuration and that its plugins are on the disk.
	Asked bool
}

// Status asks each plugin of the active network, with the CNI verb STATUS, whether it can take
// pods. Without an error all are ready, or could not be asked: see Answer.Asked.
//
// The error is an *Error, or that of ctx if it was cancelled. A plugin that is still busy at
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
	// libcni would not ask either, but would call it a success.
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
			return failure(StatusNotReady, "plugin %q cannot take pods: %s", plugin.name, scrub(plugin.text))
		case limitedConnectivity:
			return failure(StatusNotReady, "plugin %q has limited connectivity: %s", plugin.name, scrub(plugin.text))
		}
	}
	return pluginFailure(ctx, StatusFailed, "STATUS", err)
}

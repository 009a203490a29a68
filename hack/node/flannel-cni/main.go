// Command flannel-cni stands in for flannel's own CNI plugin ("type": "flannel"), which the Go
// module proxy does not have. Like it, it reads the subnet that flanneld wrote for this node and
// lets the bridge plugin do the work; without that file, as before flanneld runs, it fails.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
)

const (
	subnetFile = "/run/flannel/subnet.env"
	stateDir   = "/var/lib/cni/flannel"
)

func main() {
	skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Del: del, Check: check, Status: status},
		version.All, "flannel: a stand-in for tests")
}

func add(args *skel.CmdArgs) error {
	delegate, err := delegateConf(args.StdinData)
	if err != nil {
		return err
	}
	// Deleting needs what was used for adding, whatever flanneld has written since.
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(stateDir, args.ContainerID), delegate, 0o600); err != nil {
		return err
	}
	result, err := invoke.DelegateAdd(context.Background(), "bridge", delegate, nil)
	if err != nil {
		return err
	}
	return result.Print()
}

func del(args *skel.CmdArgs) error {
	state := filepath.Join(stateDir, args.ContainerID)
	delegate, err := os.ReadFile(state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := invoke.DelegateDel(context.Background(), "bridge", delegate, nil); err != nil {
		return err
	}
	return os.Remove(state)
}

func check(args *skel.CmdArgs) error {
	delegate, err := delegateConf(args.StdinData)
	if err != nil {
		return err
	}
	return invoke.DelegateCheck(context.Background(), "bridge", delegate, nil)
}

func status(*skel.CmdArgs) error {
	if _, err := readSubnet(); err != nil {
		return types.NewError(types.ErrPluginNotAvailable, err.Error(), "")
	}
	return nil
}

// delegateConf is what the bridge plugin is given: the configured delegate, completed with the
// node's subnet.
func delegateConf(stdin []byte) ([]byte, error) {
	var conf struct {
		Name       string          `json:"name"`
		CNIVersion string          `json:"cniVersion"`
		Delegate   map[string]any  `json:"delegate"`
		PrevResult json.RawMessage `json:"prevResult,omitempty"`
	}
	if err := json.Unmarshal(stdin, &conf); err != nil {
		return nil, err
	}
	subnet, err := readSubnet()
	if err != nil {
		return nil, err
	}
	mtu, err := strconv.Atoi(subnet["FLANNEL_MTU"])
	if err != nil {
		return nil, fmt.Errorf("%s: FLANNEL_MTU: %w", subnetFile, err)
	}
	delegate := map[string]any{
		"name": conf.Name, "cniVersion": conf.CNIVersion, "type": "bridge", "isGateway": true,
		"mtu": mtu, "ipMasq": subnet["FLANNEL_IPMASQ"] != "true",
		"ipam": map[string]any{
			"type":   "host-local",
			"ranges": [][]map[string]string{{{"subnet": networkOf(subnet["FLANNEL_SUBNET"])}}},
			"routes": []map[string]string{{"dst": subnet["FLANNEL_NETWORK"]}},
		},
	}
	for key, value := range conf.Delegate {
		delegate[key] = value
	}
	if conf.PrevResult != nil {
		delegate["prevResult"] = conf.PrevResult
	}
	return json.Marshal(delegate)
}

// networkOf turns the gateway's address, 10.244.1.1/24, into its network, 10.244.1.0/24.
func networkOf(gateway string) string {
	address, length, _ := strings.Cut(gateway, "/")
	return address[:strings.LastIndex(address, ".")+1] + "0/" + length
}

func readSubnet() (map[string]string, error) {
	data, err := os.ReadFile(subnetFile)
	if err != nil {
		return nil, fmt.Errorf("loadFlannelSubnetEnv failed: %w", err)
	}
	values := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			values[key] = value
		}
	}
	for _, key := range []string{"FLANNEL_NETWORK", "FLANNEL_SUBNET", "FLANNEL_MTU", "FLANNEL_IPMASQ"} {
		if values[key] == "" {
			return nil, fmt.Errorf("%s has no %s", subnetFile, key)
		}
	}
	return values, nil
}

package lab

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Addresses of the lab. The sandbox has no route to or from the host.
const (
	switchName   = "br0"
	planeAddress = "10.88.0.1"
	services     = "10.96.0.0/16"
	firstService = "10.96.0.1"
	pods         = "10.244.0.0/16"
)

// nodeAddress is the address of the machine with this number, from 1.
func nodeAddress(number int) string { return fmt.Sprintf("10.88.%d.%d", number/200, 10+number%200) }

// startSwitch creates the bridge of all nodes, and connects the control plane, which runs in the network namespace
// of the tests.
func startSwitch() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return err
	}
	return ip(
		"link set lo up",
		"link add "+switchName+" type bridge",
		"address add "+planeAddress+"/16 dev "+switchName,
		"link set "+switchName+" up",
	)
}

// port is the network device of the node at the bridge.
func (n *Node) port() string { return fmt.Sprint("port-", n.number) }

// plugIn gives the machine of this process a network device that is connected to the bridge.
func (n *Node) plugIn(pid int) error {
	return ip(
		"link add "+n.port()+" type veth peer name eth0 netns "+strconv.Itoa(pid),
		"link set "+n.port()+" master "+switchName+" up",
	)
}

// unplug removes the device. The kernel does so too, some time after the last process of the
// machine has ended; a machine that boots before that would find its device in use.
func (n *Node) unplug() { _ = ip("link delete " + n.port()) }

// configureCard configures the network device at boot. A new boot has a new network namespace, without
// devices and routes of the CNI.
func configureCard(address string) error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return err
	}
	return ip(
		"link set lo up",
		"address add "+address+"/16 dev eth0",
		"link set eth0 up",
		"route add default via "+planeAddress,
	)
}

// ip runs iproute2's ip for each of these arguments, until one fails.
func ip(commands ...string) error {
	for _, command := range commands {
		if out, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", command, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

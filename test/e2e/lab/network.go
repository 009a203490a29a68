package lab

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Addresses of the lab. Nobody outside the sandbox can see them, nor be seen from it.
const (
	switchName   = "br0"
	planeAddress = "10.88.0.1"
	services     = "10.96.0.0/16"
	firstService = "10.96.0.1"
	pods         = "10.244.0.0/16"
)

// nodeAddress is the address of the machine with this number, from 1.
func nodeAddress(number int) string { return fmt.Sprintf("10.88.%d.%d", number/200, 10+number%200) }

// startSwitch connects the control plane, which is where the tests are, to what the nodes will
// be plugged into.
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

// port is the node's end of the cable at the switch.
func (n *Node) port() string { return fmt.Sprint("port-", n.number) }

// plugIn gives the machine of this process a network card that is connected to the switch.
func (n *Node) plugIn(pid int) error {
	return ip(
		"link add "+n.port()+" type veth peer name eth0 netns "+strconv.Itoa(pid),
		"link set "+n.port()+" master "+switchName+" up",
	)
}

// unplug takes the cable away. The kernel does so too, some time after the last process of the
// machine has ended; a machine that boots before that would find its port taken.
func (n *Node) unplug() { _ = ip("link delete " + n.port()) }

// configureCard is what a machine does at boot. A new boot has a new network namespace, so
// nothing of the CNI's is left.
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

package controlplane

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
)

// Ports are below the ephemeral range of the system (from 32768 on Linux, from 49152 elsewhere), where an outgoing
// connection can take a port before its server starts. They are above the usual ports of services.
const (
	firstPort = 20000
	portCount = 10000
)

// nextPort counts up from a random start, so that no port is returned twice and concurrent processes rarely use the same
// ports.
var (
	portOffset = rand.Uint32N(portCount)
	nextPort   atomic.Uint32
)

// FreePorts returns ports on loopback on which no process listens at the moment.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	var last error
	for tries := 0; len(ports) < n; tries++ {
		if tries == portCount {
			return nil, fmt.Errorf("finding %d free ports: all are taken: %w", n, last)
		}
		port := firstPort + int((portOffset+nextPort.Add(1))%portCount)
		l, err := net.Listen("tcp", loopbackAddress(port))
		if err != nil {
			last = err
			continue
		}
		if err := l.Close(); err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		ports = append(ports, port)
	}
	return ports, nil
}

package controlplane

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
)

// Ports are taken from below those that systems give to outgoing connections (from 32768 on
// Linux, from 49152 elsewhere): one of these can be gone before its server starts. They are
// above what services usually have.
const (
	firstPort = 20000
	portCount = 10000
)

// nextPort counts up, from a place of this process's own, so that no port is given twice and
// processes that look at the same time seldom meet.
var (
	portOffset = rand.Uint32N(portCount)
	nextPort   atomic.Uint32
)

// FreePorts are ports on loopback that nobody listens on at the moment.
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

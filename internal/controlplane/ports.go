package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports are taken from below those that systems give to outgoing connections (from 32768 on
// Linux, from 49152 elsewhere): one of these can be gone before its server starts. They are
// above what services usually have.
const (
	firstPort = 20000
	portCount = 10000
)

// nextPort counts up from a place of this process's own, so that no port is given twice and
// processes that look at the same time seldom meet.
var nextPort struct {
	mu   sync.Mutex
	port int
}

// FreePorts are ports on loopback that nobody listens on at the moment.
func FreePorts(n int) ([]int, error) {
	nextPort.mu.Lock()
	defer nextPort.mu.Unlock()
	if nextPort.port == 0 {
		nextPort.port = firstPort + rand.IntN(portCount)
	}
	ports := make([]int, 0, n)
	var last error
	for range portCount {
		if len(ports) == n {
			return ports, nil
		}
		port := nextPort.port
		nextPort.port = firstPort + (port+1-firstPort)%portCount
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
	return nil, fmt.Errorf("finding %d free ports: %w", n, errors.Join(errors.New("all are taken"), last))
}

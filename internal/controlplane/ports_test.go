package controlplane_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/readygate/readygate/internal/controlplane"
)

func TestFreePortsReturnsEachPortOnce(t *testing.T) {
	given := map[int]bool{}
	for range 500 {
		ports, err := controlplane.FreePorts(2)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range ports {
			if given[port] {
				t.Fatalf("port %d was returned twice", port)
			}
			if port >= 32768 {
				t.Fatalf("port %d is in the ephemeral range", port)
			}
			given[port] = true
		}
	}
}

func TestFreePortsSkipsPortsInUse(t *testing.T) {
	ports, err := controlplane.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	next := ports[0] + 1
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(next)))
	if err != nil {
		t.Skipf("port %d is in use already: %v", next, err)
	}
	t.Cleanup(func() { _ = l.Close() })
	ports, err = controlplane.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	if ports[0] == next {
		t.Errorf("port %d was returned while a process listens on it", next)
	}
}

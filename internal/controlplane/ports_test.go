package controlplane_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/readygate/readygate/internal/controlplane"
)

func TestPortsAreGivenOnce(t *testing.T) {
	given := map[int]bool{}
	for range 500 {
		ports, err := controlplane.FreePorts(2)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range ports {
			if given[port] {
				t.Fatalf("port %d was given twice", port)
			}
			if port >= 32768 {
				t.Fatalf("port %d may be that of somebody's outgoing connection", port)
			}
			given[port] = true
		}
	}
}

func TestPortsInUseAreNotGiven(t *testing.T) {
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
		t.Errorf("port %d was given while somebody listens on it", next)
	}
}

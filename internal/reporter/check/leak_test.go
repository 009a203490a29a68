package check_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/reporter/check"
)

// A reporter runs for months, and checks a failing endpoint twice per second. This test does not
// run in parallel: it counts the resources of the whole process.
func TestBadEndpointsLeaveNothingBehind(t *testing.T) {
	endpoints := map[string]func(testing.TB) check.Spec{
		"gRPC that hangs": func(t testing.TB) check.Spec {
			return check.Spec{GRPC: &check.GRPC{Address: accept(t, hang)}}
		},
		"gRPC that hangs after the greeting": func(t testing.TB) check.Spec {
			return check.Spec{GRPC: &check.GRPC{Address: accept(t, greet("\x00\x00\x00\x04\x00\x00\x00\x00\x00"))}}
		},
		"gRPC that drops packets": func(t testing.TB) check.Spec {
			return check.Spec{GRPC: &check.GRPC{Address: blackhole(t)}}
		},
		"TCP that drops packets": func(t testing.TB) check.Spec {
			return check.Spec{TCP: &check.TCP{Address: blackhole(t)}}
		},
		"peers that hang": func(t testing.TB) check.Spec {
			return check.Spec{Peers: &check.Peers{Ready: accept(t, hang), Everyone: accept(t, hang)}}
		},
		"peers that drop packets": func(t testing.TB) check.Spec {
			return check.Spec{Peers: &check.Peers{Ready: blackhole(t), Everyone: blackhole(t)}}
		},
	}
	for name, endpoint := range badEndpoints {
		switch name {
		case "one that accepts and never answers", "one that accepts, and never speaks TLS", "one that drops packets", "headers without end",
			"headers that drip", "a body that drips", "random bytes", "a redirect to itself":
			endpoints["HTTP: "+name] = endpoint.spec
		}
	}
	for name, spec := range endpoints {
		t.Run(name, func(t *testing.T) {
			made := spec(t)
			askOften(t, made, 20)
			goroutines, heap := runtime.NumGoroutine(), heapInUse()
			askOften(t, made, 200)
			eventually(t, "goroutines are as many as before", func() bool { return runtime.NumGoroutine() <= goroutines })
			if grown := heapInUse() - heap; grown > 1<<20 {
				t.Errorf("200 runs left %d bytes", grown)
			}
		})
	}
}

// askOften runs the check this often, and waits until the servers have closed all connections.
func askOften(t *testing.T, spec check.Spec, times int) {
	t.Helper()
	const timeout = 20 * time.Millisecond
	before := runtime.NumGoroutine()
	runs := make(chan struct{}, times)
	for range times {
		runs <- struct{}{}
	}
	close(runs)
	var askers sync.WaitGroup
	for range 20 {
		askers.Go(func() {
			c := made(t, spec, check.Env{Node: "here", Timeout: timeout})
			for range runs {
				ran(t, c, timeout)
			}
		})
	}
	askers.Wait()
	eventually(t, "nothing runs on after the checks", func() bool { return runtime.NumGoroutine() <= before })
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // what finalizers held
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

package cni_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/readygate/readygate/internal/reporter/cni"
)

// within is a context long enough for any run.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// listen returns an open port of the host, and a closed one.
func listen(t *testing.T) (open, closed string) {
	t.Helper()
	for _, port := range []*string{&open, &closed} {
		l, err := net.Listen("tcp", ":0")
		if err != nil {
			t.Fatal(err)
		}
		*port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
		if port == &open {
			t.Cleanup(func() { _ = l.Close() })
		} else {
			_ = l.Close()
		}
	}
	return open, closed
}

func TestACanaryIsAnsweredByARealNetwork(t *testing.T) {
	n := newNetwork(t)
	open, closed := listen(t)
	for name, target := range map[string]string{
		"the gateway": "", "an address": gateway, "a port": gateway + ":" + open, "a port that refuses": gateway + ":" + closed,
	} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			c := n.canary(t, n.bridge(), fake{Type: fakeName, Log: log})
			c.Target = target
			if err := c.Run(within(t, 20*time.Second)); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"ADD begins eth0 IgnoreUnknown=1;K8S_POD_NAMESPACE=readygate;K8S_POD_NAME=canary;", "DEL begins eth0 IgnoreUnknown=1;"} {
				if !strings.Contains(string(text), part) {
					t.Errorf("%q is not in the log:\n%s", part, text)
				}
			}
			n.nothingLeft(t, c)
		})
	}
}

func TestACanaryIsAnsweredOverIPv6(t *testing.T) {
	n := newNetwork(t)
	if _, err := os.Stat("/proc/net/if_inet6"); err != nil {
		t.Skip("this kernel has no IPv6")
	}
	dual := n.bridge(func(bridge, ipam map[string]any) {
		bridge["bridge"] = "cni6"
		ipam["ranges"] = []any{[]any{map[string]any{"subnet": "fd77::/64"}}, []any{map[string]any{"subnet": "10.76.0.0/24"}}}
		ipam["routes"] = []any{}
	})
	c := n.canary(t, dual)
	if err := c.Run(within(t, 20*time.Second)); err != nil {
		t.Error(err)
	}
	open, _ := listen(t)
	c.Target = "[fd77::1]:" + open
	if err := c.Run(within(t, 20*time.Second)); err != nil {
		t.Error(err)
	}
	c.Target = "fd77::99"
	refused(t, c.Run(within(t, 20*time.Second)), cni.NoAnswer, "fd77::99 does not respond")
	nic, err := net.InterfaceByName("cni6")
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := nic.Addrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range addrs {
		ip := addr.(*net.IPNet).IP
		if ip.To4() != nil || !ip.IsLinkLocalUnicast() {
			continue
		}
		for _, c.Target = range []string{ip.String(), net.JoinHostPort(ip.String(), open)} {
			if err := c.Run(within(t, 20*time.Second)); err != nil {
				t.Errorf("%s: %v", c.Target, err)
			}
		}
	}
	if !strings.HasPrefix(c.Target, "[fe80:") {
		t.Errorf("the bridge has no link-local address: %v", addrs)
	}
	n.nothingLeft(t, c)
}

func TestAFailedCanaryIsRemoved(t *testing.T) {
	noGateway := func(bridge, _ map[string]any) { bridge["bridge"], bridge["isGateway"] = "cni1", false }
	noAddress := func(bridge, _ map[string]any) { bridge["isGateway"] = false; delete(bridge, "ipam") }
	oneAddress := func(_, ipam map[string]any) {
		ipam["ranges"] = []any{[]any{map[string]any{"subnet": "10.77.0.0/24", "rangeStart": "10.77.0.9", "rangeEnd": "10.77.0.9"}}}
	}
	says := func(text string) action { return action{Stdout: `{"code": 999, "msg": "` + text + `"}`, Exit: 1} }
	cases := map[string]struct {
		edit   []func(bridge, ipam map[string]any)
		then   fake
		target string
		taken  bool
		reason cni.Reason
		says   string
	}{
		"the target does not exist":        {target: "10.77.0.200", reason: cni.NoAnswer, says: "10.77.0.200 does not respond"},
		"the port of the target is closed": {target: "10.77.0.200:80", reason: cni.NoAnswer, says: "10.77.0.200:80 does not respond"},
		"the gateway is gone":              {edit: []func(_, _ map[string]any){noGateway}, reason: cni.NoAnswer, says: "gateway 10.77.0.1 does not respond"},
		"all addresses are taken":          {edit: []func(_, _ map[string]any){oneAddress}, taken: true, reason: cni.NotConnected, says: `ADD of plugin "bridge" failed: failed to allocate for range 0: no IP addresses available`},
		"no address was given":             {edit: []func(_, _ map[string]any){noAddress}, reason: cni.NotConnected, says: "interface eth0 has no address"},
		"a plugin fails after another":     {then: on("ADD", says("no, $ID in $NETNS")), reason: cni.NotConnected, says: `ADD of plugin "fake" failed: no, the canary in its namespace`},
		"a plugin writes no result":        {then: on("ADD", action{Stdout: "junk"}), reason: cni.NotConnected, says: "invalid character"},
		"a plugin hangs":                   {then: on("ADD", action{Sleep: time.Minute}), reason: cni.NotConnected, says: `ADD of plugin "fake" did not finish in time`},
		"the host is not known":            {target: "no.such.host.invalid:80", reason: cni.BadTarget, says: "cannot be resolved"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t)
			if tc.then.Type == "" {
				tc.then.Type = fakeName
			}
			tc.then.Log = filepath.Join(t.TempDir(), "log")
			c := n.canary(t, n.bridge(tc.edit...), tc.then)
			c.Target = tc.target
			if tc.taken {
				if err := os.Mkdir(filepath.Join(n.dataDir, "pods"), 0o700); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(n.dataDir, "pods"), "10.77.0.9", "other\neth0")
			}
			limit := 30 * time.Second // more than it takes
			if tc.reason == cni.NoAnswer || strings.Contains(tc.says, "in time") {
				limit = 5 * time.Second // it takes all of it
			}
			err := c.Run(within(t, limit))
			refused(t, err, tc.reason, tc.says)
			if again := c.Run(within(t, limit)); again == nil || again.Error() != err.Error() {
				t.Errorf("first  %v\nsecond %v", err, again)
			}
			if text, _ := os.ReadFile(tc.then.Log); !strings.Contains(string(text), "DEL ends") {
				t.Errorf("DEL did not reach the plugin:\n%s", text)
			}
			if tc.taken {
				if err := os.Remove(filepath.Join(n.dataDir, "pods", "10.77.0.9")); err != nil {
					t.Errorf("the address of another was taken back: %v", err)
				}
			}
			n.nothingLeft(t, c)
		})
	}
}

func TestACancelledRunLeavesNothing(t *testing.T) {
	n := newNetwork(t)
	for name, c := range map[string]*cni.Canary{
		"in ADD":                 n.canary(t, n.bridge(), on("ADD", action{Sleep: time.Minute})),
		"waiting for the answer": n.canary(t, n.bridge()),
	} {
		t.Run(name, func(t *testing.T) {
			c.Target = "10.77.0.200"
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			err := c.Run(ctx)
			if failed := (*cni.Error)(nil); errors.As(err, &failed) || !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want that the context was cancelled", err)
			}
			n.nothingLeft(t, c)
		})
	}
}

func TestWhileDelFailsThereIsNoNewCanary(t *testing.T) {
	n := newNetwork(t)
	log := filepath.Join(t.TempDir(), "log")
	failing := fake{Type: fakeName, Log: log, Do: map[string]action{"DEL": {Stdout: `{"code": 11, "msg": "try again"}`, Exit: 1}}}
	c := n.canary(t, n.bridge(), failing)
	for range 3 {
		refused(t, c.Run(within(t, 10*time.Second)), cni.DelFailed, `DEL of plugin "fake" failed: try again`)
	}
	refused(t, c.Sweep(within(t, 10*time.Second)), cni.DelFailed, "try again")
	if text, _ := os.ReadFile(log); strings.Count(string(text), "ADD begins") != 1 {
		t.Errorf("more than one ADD:\n%s", text)
	}
	// The configuration of then is what counts, not that of now.
	write(t, n.ConfDir, "10.conflist", list(t, "1.0.0", n.bridge()))
	refused(t, c.Run(within(t, 10*time.Second)), cni.DelFailed, "try again")
	works := filepath.Join(t.TempDir(), "fake")
	if err := os.WriteFile(works, []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.BinDirs = append([]string{filepath.Dir(works)}, c.BinDirs...)
	if err := c.Run(within(t, 10*time.Second)); err != nil {
		t.Error(err)
	}
	n.nothingLeft(t, c)
}

func TestTwoCanariesDoNotRunAtOnce(t *testing.T) {
	n := newNetwork(t)
	log := filepath.Join(t.TempDir(), "log")
	c := n.canary(t, n.bridge(), fake{Type: fakeName, Log: log, Do: map[string]action{"ADD": {Sleep: time.Second}}})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := c.Run(within(t, 20*time.Second)); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "no ADD", func() bool { _, err := os.Stat(log); return err == nil })
	refused(t, c.Run(within(t, 100*time.Millisecond)), cni.Busy, "another canary")
	refused(t, c.Sweep(within(t, 100*time.Millisecond)), cni.Busy, "another canary")
	wg.Wait()
	text, _ := os.ReadFile(log)
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if want := []string{"ADD begins", "ADD ends", "DEL begins", "DEL ends"}[i%4]; !strings.HasPrefix(line, want) {
			t.Fatalf("line %d is %q, want %q:\n%s", i, line, want, text)
		}
	}
	n.nothingLeft(t, c)
}

func TestWithoutPermissionTheErrorNamesTheCapability(t *testing.T) {
	p := plugins(t)
	write(t, p.ConfDir, "10.conflist", list(t, "1.0.0", fake{Type: fakeName}))
	c := &cni.Canary{Plugins: p, StateDir: t.TempDir()}
	if os.Geteuid() != 0 {
		refused(t, c.Run(within(t, 10*time.Second)), cni.NotPermitted, "CAP_SYS_ADMIN")
		return
	}
	n := newNetwork(t)
	real := n.canary(t, n.bridge())
	for name, tc := range map[string]struct {
		c    *cni.Canary
		drop uintptr
	}{"CAP_SYS_ADMIN": {c, unix.CAP_SYS_ADMIN}, "CAP_NET_RAW": {real, unix.CAP_NET_RAW}} {
		t.Run(name, func(t *testing.T) {
			out, err := withoutCapability(t, tc.c, tc.drop)
			if err == nil || !strings.Contains(out, "NotPermitted: ") || !strings.Contains(out, name) {
				t.Errorf("got %q and %v", out, err)
			}
			n.nothingLeft(t, tc.c)
		})
	}
}

// withoutCapability runs the canary in a process that lacks a capability, and returns its output.
func withoutCapability(t *testing.T, c *cni.Canary, capability uintptr) (string, error) {
	t.Helper()
	cmd := process(t, c)
	var out []byte
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread lacks it for good
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if err == nil {
			out, err = cmd.Output()
		}
		done <- err
	}()
	err := <-done
	return string(out), err
}

func TestAStateDirectoryThatCannotBeUsedIsNamed(t *testing.T) {
	p := plugins(t)
	write(t, p.ConfDir, "10.conflist", list(t, "1.0.0", fake{Type: fakeName}))
	write(t, p.ConfDir, "file", "")
	c := &cni.Canary{Plugins: p, StateDir: filepath.Join(shorten(t, p.ConfDir), "file")}
	refused(t, c.Run(within(t, 10*time.Second)), cni.NotPermitted, "file: not a directory")
	refused(t, c.Sweep(within(t, 10*time.Second)), cni.NotPermitted, "file: not a directory")
}

func TestABadTargetIsRefusedAtOnce(t *testing.T) {
	for _, target := range []string{"gateway", "10.0.0.1:", ":80", "10.0.0.1:nonsense", "10.0.0.0/8"} {
		c := &cni.Canary{Target: target}
		refused(t, c.Validate(), cni.BadTarget, target)
		refused(t, c.Run(t.Context()), cni.BadTarget, target)
	}
	for _, target := range []string{"", "10.0.0.1", "fd00::1", "10.0.0.1:80", "[fd00::1]:443", "kubernetes.default:https"} {
		if err := (&cni.Canary{Target: target}).Validate(); err != nil {
			t.Error(err)
		}
	}
}

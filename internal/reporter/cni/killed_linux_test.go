package cni_test

import (
	"bufio"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/readygate/readygate/internal/reporter/cni"
)

// killedAfter runs the canary in a process, and kills it after this time; never if it
// is negative. It returns how long the process ran.
func killedAfter(t *testing.T, c *cni.Canary, wait time.Duration) time.Duration {
	t.Helper()
	cmd := process(t, c)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "begins\n" {
		t.Fatalf("got %q and %v", line, err)
	}
	began := time.Now()
	if wait >= 0 {
		time.AfterFunc(wait, func() { _ = cmd.Process.Kill() })
	}
	_ = cmd.Wait()
	return time.Since(began)
}

func TestARunKilledAtAnyMomentIsRemoved(t *testing.T) {
	n := newNetwork(t)
	c := n.canary(t, n.bridge(), fake{Type: fakeName})
	whole := killedAfter(t, c, -1)
	n.nothingLeft(t, c)
	left := 0
	for i := range 24 {
		// One in each part of the time, so that no part is left out.
		wait := whole * time.Duration(i) / 24
		wait += rand.N(whole/24 + 1)
		killedAfter(t, c, wait)
		if files, _ := filepath.Glob(c.StateDir + "/*.json"); len(files) > 0 {
			left++
		}
		if err := c.Sweep(within(t, 20*time.Second)); err != nil {
			t.Errorf("killed after %v of %v: %v", wait, whole, err)
		}
		if n.nothingLeft(t, c); t.Failed() {
			t.Fatalf("killed after %v of %v", wait, whole)
		}
	}
	if left < 5 {
		t.Errorf("only %d of 24 left anything to sweep: the moments are badly chosen", left)
	}
	if err := c.Run(within(t, 20*time.Second)); err != nil {
		t.Error(err)
	}
}

// The plugin itself kills the canary that called it, so the moment is exact.
func TestARunKilledByItsPluginIsRemoved(t *testing.T) {
	trigger := filepath.Join(t.TempDir(), "trigger")
	killing := func(verb string, sleep time.Duration) fake {
		return on(verb, action{KillParent: trigger, Sleep: sleep})
	}
	n := newNetwork(t)
	cases := map[string][]any{
		"before the others gave anything":    {killing("ADD", 0), n.bridge()},
		"when the others had given all":      {n.bridge(), killing("ADD", 0)},
		"before the others took back":        {n.bridge(), killing("DEL", 0)},
		"when the others had taken back":     {killing("DEL", 0), n.bridge()},
		"and the plugin goes on for a while": {n.bridge(), killing("ADD", time.Second)},
		"and the plugin hangs":               {n.bridge(), killing("ADD", time.Minute)},
	}
	for name, plugins := range cases {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			for i, p := range plugins {
				if f, ok := p.(fake); ok {
					f.Log = log
					plugins[i] = f
				}
			}
			c := n.canary(t, plugins...)
			write(t, filepath.Dir(trigger), filepath.Base(trigger), "")
			killedAfter(t, c, -1)
			if files, _ := filepath.Glob(c.StateDir + "/*.json"); len(files) != 1 {
				t.Fatalf("the run was not killed: %v", files)
			}
			if err := c.Sweep(within(t, 20*time.Second)); err != nil {
				t.Error(err)
			}
			n.nothingLeft(t, c)
			text, _ := os.ReadFile(log)
			if lines := strings.Split(strings.TrimSpace(string(text)), "\n"); lines[len(lines)-1] != "DEL ends" {
				t.Errorf("DEL was not the last:\n%s", text)
			}
			if ended := strings.Contains(string(text), "ADD ends"); ended == strings.HasSuffix(name, "hangs") {
				t.Errorf("a plugin that takes a second may end, one that hangs may not:\n%s", text)
			}
		})
	}
}

func TestACanaryIsRemovedAfterAReboot(t *testing.T) {
	n := newNetwork(t)
	trigger := filepath.Join(t.TempDir(), "trigger")
	write(t, filepath.Dir(trigger), "trigger", "")
	c := n.canary(t, n.bridge(), on("ADD", action{KillParent: trigger}))
	killedAfter(t, c, -1)
	mounts, _ := filepath.Glob(c.StateDir + "/netns/*")
	if len(mounts) != 1 {
		t.Fatalf("got %v", mounts)
	}
	if err := unix.Unmount(mounts[0], unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	write(t, c.StateDir, "readygate-canary-00.json.partial", "{")
	if err := c.Sweep(within(t, 20*time.Second)); err != nil {
		t.Error(err)
	}
	n.nothingLeft(t, c)
}

func TestAnInvalidRecordIsNamed(t *testing.T) {
	n := newNetwork(t)
	c := n.canary(t, n.bridge())
	c.StateDir = shorten(t, c.StateDir)
	file := "readygate-canary-00.json"
	for _, text := range []string{"", "{}", `{"containerID": "readygate-canary-01"}`, `{"containerID": "readygate-canary-00"}`} {
		write(t, c.StateDir, file, text)
		refused(t, c.Run(within(t, 10*time.Second)), cni.DelFailed, filepath.Join(c.StateDir, file)+" is not a valid record of a canary: remove it")
	}
	if err := os.Remove(filepath.Join(c.StateDir, file)); err != nil {
		t.Fatal(err)
	}
	if err := c.Run(within(t, 10*time.Second)); err != nil {
		t.Error(err)
	}
}

// The next run removes the canary of a killed run also without a configuration, as
// after a reboot, before the network add-on has written it again.
func TestLeftoversAreRemovedWithoutAConfiguration(t *testing.T) {
	n := newNetwork(t)
	trigger := filepath.Join(t.TempDir(), "trigger")
	write(t, filepath.Dir(trigger), "trigger", "")
	c := n.canary(t, n.bridge(), on("ADD", action{KillParent: trigger}))
	killedAfter(t, c, -1)
	if files, _ := filepath.Glob(c.StateDir + "/*.json"); len(files) != 1 {
		t.Fatalf("the run was not killed: %v", files)
	}
	c.ConfDir = shorten(t, t.TempDir())
	refused(t, c.Run(within(t, 20*time.Second)), cni.NoConfig, "no CNI configuration in "+c.ConfDir+": the network add-on has not written it yet, or is not installed")
	n.nothingLeft(t, c)
}

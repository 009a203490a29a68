package cni_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/reporter/cni"
)

// refused checks that an error is this failure.
func refused(t *testing.T, err error, reason cni.Reason, parts ...string) {
	t.Helper()
	var failed *cni.Error
	if !errors.As(err, &failed) {
		t.Fatalf("got error %v, want a %s", err, reason)
	}
	if failed.Reason != reason {
		t.Fatalf("got %q, want a %s", err, reason)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("got %q, want %q in it", err, part)
		}
	}
	if len(err.Error()) >= 200 {
		t.Errorf("%d bytes are too long: %s", len(err.Error()), err)
	}
}

func TestStatusIsThatOfThePlugins(t *testing.T) {
	said := func(text string) action { return action{Stdout: text, Exit: 1} }
	cases := map[string]struct {
		does   action
		reason cni.Reason
		says   string
	}{
		"ready":                             {},
		"ready, with junk on its output":    {does: action{Stdout: "junk", Stderr: "junk"}},
		"cannot accept pods":                {does: said(`{"code": 50, "msg": "no token", "details": "yet"}`), reason: cni.StatusNotReady, says: `plugin "fake" cannot accept pods: no token; yet`},
		"limited connectivity":              {does: said(`{"code": 51, "msg": "no route"}`), reason: cni.StatusNotReady, says: `plugin "fake" has limited connectivity: no route`},
		"another error":                     {does: said(`{"code": 7, "msg": "bad field"}`), reason: cni.StatusFailed, says: `STATUS of plugin "fake" failed: bad field`},
		"an error without a code":           {does: said(`{"msg": "bad day"}`), reason: cni.StatusFailed, says: "bad day"},
		"junk and a failure":                {does: action{Stdout: "jun\x00k\n\n{", Exit: 3}, reason: cni.StatusFailed, says: "exit status 3, without a CNI error: jun k {"},
		"a failure on the error output":     {does: action{Stdout: "{}", Stderr: "panic: no", Exit: 2}, reason: cni.StatusFailed, says: "exit status 2, without a CNI error: panic: no"},
		"nothing but a failure":             {does: action{Exit: 1}, reason: cni.StatusFailed, says: "exit status 1, without a CNI error"},
		"a very long error":                 {does: said(`{"code": 50, "msg": "` + strings.Repeat("ä word ", 1000) + `"}`), reason: cni.StatusNotReady, says: "…"},
		"100 MB of output":                  {does: action{Flood: 100 << 20}, reason: cni.StatusFailed, says: "wrote more than 1 MiB"},
		"100 MB of output, and then an end": {does: action{Flood: 100 << 20, Exit: 1}, reason: cni.StatusFailed, says: "exit status 1, without a CNI error: junk junk"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := plugins(t)
			write(t, p.ConfDir, "10.conflist", list(t, "1.1.0", fake{Type: fakeName}, on("STATUS", tc.does)))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			answer, err := p.Status(t.Context())
			runtime.ReadMemStats(&after)

			if want := (cni.Answer{Network: "pods", Version: "1.1.0", Asked: true}); answer != want {
				t.Errorf("got %+v, want %+v", answer, want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 10<<20 {
				t.Errorf("it took %d MiB of memory", took>>20)
			}
			if tc.reason == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			refused(t, err, tc.reason, tc.says)
		})
	}
}

func TestAPluginThatHangsIsKilledWithItsChildren(t *testing.T) {
	p := plugins(t)
	file := filepath.Join(t.TempDir(), "pid")
	write(t, p.ConfDir, "10.conflist", list(t, "1.1.0", on("STATUS", action{Child: file, Sleep: time.Minute})))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := p.Status(ctx)
	refused(t, err, cni.StatusFailed, `STATUS of plugin "fake" did not finish in time`)
	dies(t, file)
}

func TestChildThatKeepsTheOutputOpenDoesNotDelayTheResult(t *testing.T) {
	p := plugins(t)
	file := filepath.Join(t.TempDir(), "pid")
	write(t, p.ConfDir, "10.conflist", list(t, "1.1.0", on("STATUS", action{Child: file})))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := p.Status(ctx)
	if err != nil {
		t.Error(err)
	}
	if ctx.Err() != nil {
		t.Error("it waited for the child")
	}
	kill(t, file)
}

func TestACancelledRunIsNoFailure(t *testing.T) {
	p := plugins(t)
	write(t, p.ConfDir, "10.conflist", list(t, "1.1.0", on("STATUS", action{Sleep: time.Minute})))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	_, err := p.Status(ctx)
	if failed := (*cni.Error)(nil); errors.As(err, &failed) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the context was cancelled", err)
	}
}

func TestStatusIsNotCalledForOldCNIVersions(t *testing.T) {
	for _, version := range []string{"", "0.3.1", "0.4.0", "1.0.0"} {
		t.Run(version, func(t *testing.T) {
			p := plugins(t)
			log := filepath.Join(t.TempDir(), "log")
			write(t, p.ConfDir, "10.conflist", list(t, version, fake{Type: fakeName, Log: log, Do: map[string]action{"STATUS": {Exit: 1}}}))
			answer, err := p.Status(t.Context())
			if want := (cni.Answer{Network: "pods", Version: version}); err != nil || answer != want {
				t.Errorf("got %+v and %v, want %+v", answer, err, want)
			}
			if _, err := os.Stat(log); err == nil {
				t.Error("the plugin was run")
			}
		})
	}
}

func TestThePluginThatFailsIsNamed(t *testing.T) {
	p := plugins(t)
	if err := os.Rename(filepath.Join(p.BinDirs[0], fakeName), filepath.Join(p.BinDirs[0], "other")); err != nil {
		t.Fatal(err)
	}
	write(t, p.BinDirs[0], "script", "#!/no/such/shell\n")
	if err := os.Chmod(filepath.Join(p.BinDirs[0], "script"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, p.ConfDir, "10.conflist", list(t, "1.1.0", fake{Type: "script"}))
	_, err := p.Status(t.Context())
	refused(t, err, cni.StatusFailed, `STATUS of plugin "script" failed: cannot be run: no such file or directory`)
}

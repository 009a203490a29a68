package latch_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/latch"
)

func variables(of map[string]string) func(string) string {
	return func(name string) string { return of[name] }
}

func TestALatchIsConfiguredByItsVariables(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		given map[string]string
		want  latch.Options
	}{
		"none": {want: latch.Options{}},
		"all": {
			given: map[string]string{"READYGATE_POD_IP": "10.0.0.7", "READYGATE_DEADLINE": "60", "READYGATE_POD_NAME": "web-1", "READYGATE_POD_NAMESPACE": "shop", "HOSTNAME": "web"},
			want:  latch.Options{PodIP: "10.0.0.7", Deadline: time.Minute, Pod: "web-1", Namespace: "shop"},
		},
		"the name from the host":   {given: map[string]string{"HOSTNAME": "web"}, want: latch.Options{Pod: "web"}},
		"the longest of deadlines": {given: map[string]string{"READYGATE_DEADLINE": "86400"}, want: latch.Options{Deadline: 24 * time.Hour}},
	} {
		var out bytes.Buffer
		tc.want.Dir, tc.want.BootFile, tc.want.SandboxFile, tc.want.Out = "/var/run/readygate/latch", "/proc/sys/kernel/random/boot_id", "/etc/hostname", &out
		if got := latch.FromEnvironment(variables(tc.given), &out); *got != tc.want || out.Len() > 0 {
			t.Errorf("%s: read as %+v, want %+v, and logged %q", name, *got, tc.want, &out)
		}
	}
}

// A latch that failed because of it would hold the pod forever.
func TestAnInvalidDeadlineIsLoggedAndCountsAsNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"0", "-1", "1m", "1.5", " ", "86401", "99999999999999999999"} {
		var out bytes.Buffer
		got := latch.FromEnvironment(variables(map[string]string{"READYGATE_DEADLINE": text, "READYGATE_POD_IP": "10.0.0.7"}), &out)
		want := `readygate-latch: READYGATE_DEADLINE is "` + text + `", must be seconds from 1 to 86400, e.g. READYGATE_DEADLINE=60: waiting without a deadline` + "\n"
		if got.Deadline != 0 || got.PodIP != "10.0.0.7" || out.String() != want {
			t.Errorf("%q is read as %v, and it said %q, want %q", text, got.Deadline, &out, want)
		}
	}
}

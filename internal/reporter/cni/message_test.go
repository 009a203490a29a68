package cni_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/reporter/cni"
)

// Messages of plugins with parts that differ each time, and the stable results.
func TestTheSameFailureHasTheSameText(t *testing.T) {
	cases := map[string]struct{ says, want string }{
		"a connection":   {`Get "https://127.0.0.1:6443/": dial tcp 127.0.0.1:$PORT->127.0.0.1:6443: connect: connection refused`, `Get "https://127.0.0.1:6443/": dial tcp 127.0.0.1->127.0.0.1:6443: connect: connection refused`},
		"a log line":     {"E0731 10:11:12.$NANOS  $PID main.go:17] no token", "main.go:17] no token"},
		"a time":         {"$NOW no token", "<time> no token"},
		"a duration":     {"gave up after 1.$NANOSs", "gave up after <time>"},
		"a process":      {"pid $PID is gone", "pid <n> is gone"},
		"an interface":   {"cannot move veth$HEX to the host", "cannot move veth<id> to the host"},
		"an identifier":  {"no sandbox $HEX$HEX", "no sandbox <id>"},
		"a pointer":      {"bad state 0xc0$HEX", "bad state <id>"},
		"several lines":  {"one\n\ttwo\r\n three", "one two three"},
		"what is stable": {"no IP addresses available in range set: 10.1.0.1-10.1.0.254, see https://10.96.0.1:443 (30s, 12 of 254)", "no IP addresses available in range set: 10.1.0.1-10.1.0.254, see https://10.96.0.1:443 (30s, 12 of 254)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := plugins(t)
			text, _ := json.Marshal(map[string]any{"code": 50, "msg": tc.says})
			write(t, p.ConfDir, "10.conflist", list(t, "1.1.0", on("STATUS", action{Stdout: string(text), Exit: 1})))
			for range 2 {
				_, err := p.Status(t.Context())
				refused(t, err, cni.StatusNotReady)
				if want := `NetworkNotReady: plugin "fake" cannot accept pods: ` + tc.want; err.Error() != want {
					t.Errorf("got  %s\nwant %s", err, want)
				}
			}
		})
	}
}

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	for shift := range 4 {
		p := plugins(t)
		p.ConfDir = "/" + strings.Repeat("x", shift) + strings.Repeat("→", 100)
		_, err := p.Status(t.Context())
		refused(t, err, cni.NoConfig, "→…")
		if text := err.Error(); text != strings.ToValidUTF8(text, "?") {
			t.Errorf("not UTF-8: %q", text)
		}
	}
}

package probe_test

import (
	"path/filepath"
	"testing"
)

// Links resolve as on the host, and never to the agent's files.
func TestLinksAreResolvedInTheRootOfTheHost(t *testing.T) {
	t.Parallel()
	outside, host := newHost(t), newHost(t)
	outside.write("/secret", "")
	host.write("/run/agent/web", "10.0.0.7/32")
	host.write("/secret", "the host's")
	host.mkdir("/var")
	host.link("/var/run", "/run")
	host.link("/run/agent/absolute", "/var/run/agent/web")
	host.link("/run/agent/out", filepath.Join(outside.root, "secret"))
	host.link("/run/agent/up", "../../../../../../secret")
	expect(t, host.ask(t, "/var/run/agent/web", "10.0.0.7/32"), yes)
	expect(t, host.ask(t, "/run/agent/absolute", "10.0.0.7/32"), yes)
	expect(t, host.ask(t, "/run/agent/up", "the host's"), yes)
	expect(t, host.ask(t, "/../../secret", "the host's"), yes)
	expect(t, host.ask(t, "/run/agent/out", ""), no("no such file"))
}

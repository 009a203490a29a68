package lab

import (
	"path/filepath"
	"testing"

	"github.com/readygate/readygate/internal/testenv"
)

// Helm is the real binary, in kubectl's home.
type Helm struct{ kubectl *testenv.Kubectl }

func newHelm(kubectl *testenv.Kubectl) *Helm { return &Helm{kubectl} }

// Run runs helm, which must succeed.
func (h *Helm) Run(t testing.TB, args ...string) string {
	t.Helper()
	return h.kubectl.Tool(t, filepath.Join(repository(), "bin", "chart", "helm"), args...)
}

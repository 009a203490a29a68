// Package architecture tests the shape of the project: which package may know which.
package architecture_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/readygate/readygate/"

// pure packages decide and touch nothing.
var pure = []string{"internal/readiness", "internal/policy", "internal/view", "internal/scenario", "internal/gating", "internal/latchkey", "test/scale/report"}

// impure is what a pure package may not import: clients, clocks, loggers, the system.
var impure = []string{
	"os", "os/*", "net", "net/*", "syscall", "log", "log/*", "context", "io/fs", "math/rand", "math/rand/*",
	"k8s.io/client-go/*", "k8s.io/klog/*", "k8s.io/utils/clock", "sigs.k8s.io/controller-runtime/*", "github.com/go-logr/*",
}

// mayImport says for each package of ours which others of ours it may import. A package
// that is not named may import none: whoever adds one decides its place here.
var mayImport = map[string][]string{
	"api/node/v1alpha1":             {},
	"api/pod/v1alpha1":              {},
	"api/crds":                      {},
	"internal/latchkey":             {},
	"internal/latch":                {"internal/latchkey"},
	"cmd/readygate-latch":           {"internal/latch", "internal/version"},
	"internal/gating":               {"api/pod/v1alpha1", "internal/latchkey", "internal/note"},
	"internal/plainly":              {},
	"internal/paging":               {},
	"internal/kubeconfig":           {},
	"internal/component":            {"internal/gating", "internal/plainly", "internal/note", "internal/version"},
	"internal/agentlease":           {"internal/gating", "internal/policy"},
	"internal/podgate":              {"api/pod/v1alpha1", "internal/gating", "internal/latchkey", "internal/agentlease", "internal/component", "internal/kubeconfig", "internal/policy", "internal/version", "internal/note", "internal/paging", "internal/sharedread"},
	"internal/sharedread":           {},
	"internal/ownership":            {"internal/policy", "internal/readiness"},
	"cmd/readygate-podgate":         {"internal/podgate", "internal/version"},
	"internal/controller/upkeep":    {},
	"internal/controller/podrule":   {"api/*", "internal/agentlease", "internal/controller/upkeep", "internal/coverage", "internal/gating", "internal/leadership", "internal/note", "internal/roster", "internal/paging"},
	"internal/version":              {},
	"internal/readiness":            {"api/node/v1alpha1"},
	"internal/view":                 {"api/node/v1alpha1", "internal/readiness", "api/pod/v1alpha1", "internal/gating", "internal/latchkey"},
	"internal/live":                 {"api/node/v1alpha1", "internal/readiness", "internal/view", "api/pod/v1alpha1", "internal/agentlease", "internal/gating", "internal/paging"},
	"internal/dashboard":            {"internal/live", "internal/readiness", "internal/view"},
	"internal/ledger":               {},
	"internal/note":                 {},
	"internal/turnstile":            {},
	"internal/logline":              {},
	"internal/rulebook":             {"api/node/v1alpha1", "internal/readiness"},
	"internal/roster":               {},
	"internal/sieve":                {"internal/readiness"},
	"internal/doorman":              {},
	"internal/herald":               {},
	"internal/allotment":            {"internal/readiness"},
	"internal/tenure":               {},
	"internal/leadership":           {"api/node/v1alpha1"},
	"internal/controller/node":      {"api/node/v1alpha1", "internal/allotment", "internal/readiness", "internal/roster", "internal/rulebook", "internal/ledger", "internal/note", "internal/tenure", "internal/paging", "internal/sharedread", "internal/ownership"},
	"internal/controller/rule":      {"api/node/v1alpha1", "internal/readiness", "internal/roster", "internal/rulebook", "internal/ledger", "internal/note", "internal/policy", "internal/coverage", "internal/controller/upkeep", "internal/leadership", "internal/workload", "internal/ownership"},
	"internal/controller/admission": {"api/node/v1alpha1", "internal/readiness", "internal/rulebook", "internal/note", "internal/policy", "internal/coverage"},
	"internal/policy":               {"api/*", "internal/readiness", "internal/gating", "internal/latchkey"},
	"internal/coverage":             {"api/node/v1alpha1", "internal/policy"},
	"internal/manager":              {"api/*", "internal/version", "internal/allotment", "internal/doorman", "internal/herald", "internal/roster", "internal/sieve", "internal/rulebook", "internal/ledger", "internal/policy", "internal/coverage", "internal/tenure", "internal/turnstile", "internal/workload", "internal/controller/*", "internal/agentlease", "internal/kubeconfig", "internal/leadership", "internal/note", "internal/readiness", "internal/ownership"},
	"internal/cleanup":              {"api/node/v1alpha1", "internal/version", "internal/readiness", "internal/rulebook", "internal/policy", "internal/controller/node", "internal/manager", "api/pod/v1alpha1", "internal/agentlease", "internal/gating", "internal/kubeconfig", "internal/paging", "internal/ownership"},
	"internal/command":              {},
	"internal/cni":                  {"internal/command"},
	"internal/check":                {"internal/version", "internal/cni", "internal/command", "internal/plainly"},
	"internal/nodestatus":           {"internal/version"},
	"internal/reporter":             {"internal/version", "internal/check", "internal/nodestatus"},
	"cmd/readygate-reporter":        {"internal/reporter", "internal/version"},
	"internal/controlplane":         {},
	"internal/scenario":             {},
	"internal/terminal":             {},
	"internal/demo":                 {"api/*", "internal/scenario", "internal/terminal", "internal/view", "internal/live", "internal/readiness", "internal/dashboard", "internal/policy", "internal/manager", "internal/reporter", "internal/check", "internal/nodestatus", "internal/controlplane", "internal/workload", "internal/agentlease", "internal/gating", "internal/podgate"},
	"hack/demo":                     {"internal/demo"},
	"internal/testkit":              {"api/*", "internal/coverage", "internal/manager", "internal/reporter", "internal/controlplane", "internal/policy"},
	"hack/manifests":                {"api/crds", "internal/policy"},
	"cmd/readygate-manager":         {"internal/manager", "internal/cleanup", "internal/logline", "internal/version"},
	"internal/workload":             {},
	"internal/lint":                 {"api/*", "internal/readiness", "internal/policy", "internal/workload", "internal/gating"},
	"internal/cli/text":             {"api/node/v1alpha1", "api/pod/v1alpha1", "internal/readiness", "internal/view", "internal/lint", "internal/terminal"},
	"internal/cli":                  {"api/*", "internal/gating", "internal/readiness", "internal/policy", "internal/view", "internal/live", "internal/lint", "internal/cli/text", "internal/terminal", "internal/dashboard", "internal/version"},
	"cmd/kubectl-readiness":         {"internal/cli"},
	"hack/clidocs":                  {"internal/cli"},
	"hack/cluster":                  {"internal/controlplane"},
	"test/e2e/lab":                  {"internal/controlplane", "internal/testkit"},
	"test/scale/report":             {},
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	var all []pkg
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		p.ImportPath = strings.TrimPrefix(p.ImportPath, module)
		all = append(all, p)
	}
}

// matches says whether the import path is one of the patterns; "x/*" is all below x.
func matches(importPath string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		below, all := strings.CutSuffix(pattern, "/*")
		return importPath == pattern || all && strings.HasPrefix(importPath, below+"/")
	})
}

func TestImportsPointToTheCore(t *testing.T) {
	all := packages(t)
	if len(all) < len(mayImport) {
		t.Fatalf("found only %d packages", len(all))
	}
	for _, p := range all {
		if path.Dir(p.ImportPath) == "test" {
			continue // tests may use anything; they have no importers
		}
		allowed, known := mayImport[p.ImportPath]
		if !known {
			t.Errorf("%s has no place in the order of packages: name it in mayImport", p.ImportPath)
		}
		for _, imported := range p.Imports {
			if ours, ok := strings.CutPrefix(imported, module); ok && !matches(ours, allowed) {
				t.Errorf("%s may not import %s", p.ImportPath, ours)
			}
			if slices.Contains(pure, p.ImportPath) && imported != "net/url" && matches(imported, impure) {
				t.Errorf("%s is pure and may not import %s", p.ImportPath, imported)
			}
		}
	}
}

// heavy is what the binaries of a cluster may not bring along: the program is a third of what the
// manager takes of a node's memory.
var heavy = []string{"k8s.io/apiserver/*", "k8s.io/apiextensions-apiserver/pkg/apiserver/*", "github.com/google/cel-go/*"}

func TestBinariesBringAlongNothingHeavy(t *testing.T) {
	for binary, alsoHeavy := range map[string][]string{
		"cmd/readygate-manager":  {"google.golang.org/grpc"},
		"cmd/readygate-reporter": {"k8s.io/client-go/*", "sigs.k8s.io/controller-runtime/*"},
	} {
		out, err := exec.Command("go", "list", "-deps", module+binary).Output()
		if err != nil {
			t.Fatalf("listing what %s imports: %v", binary, err)
		}
		for dependency := range strings.Lines(string(out)) {
			if dependency = strings.TrimSpace(dependency); matches(dependency, heavy) || matches(dependency, alsoHeavy) {
				t.Errorf("%s brings %s along", binary, dependency)
			}
		}
	}
}

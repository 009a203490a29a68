// Package architecture tests the shape of the project: which directory may import which.
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

// pure are the directories that decide: their packages may import neither clients, clocks, loggers nor the system.
var pure = []string{"internal/core", "internal/plugin/view", "internal/scenario", "test/scale/report"}

var impure = []string{
	"os", "os/*", "net", "net/*", "syscall", "log", "log/*", "context", "io/fs", "math/rand", "math/rand/*",
	"k8s.io/client-go/*", "k8s.io/klog/*", "k8s.io/utils/clock", "sigs.k8s.io/controller-runtime/*", "github.com/go-logr/*",
}

// allowedImpure are imports of pure packages that have no effects.
var allowedImpure = []string{"net/url", "github.com/go-logr/logr"}

// programs are the directories of programs. They do not import each other.
var programs = []string{"internal/manager", "internal/reporter", "internal/podgate", "internal/latch", "internal/plugin"}

// leaves are directories that import nothing of ours except each other.
var leaves = []string{"internal/boot", "internal/program", "internal/neterror", "internal/liveread", "internal/mutatingpolicy", "internal/text", "internal/version", "internal/controlplane", "internal/scenario"}

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

// matches reports whether the import path is one of the patterns; "x/*" is everything below x.
func matches(importPath string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		below, all := strings.CutSuffix(pattern, "/*")
		return importPath == pattern || all && strings.HasPrefix(importPath, below+"/")
	})
}

// dirOf returns the directory of dirs that contains the package; empty if none does.
func dirOf(importPath string, dirs []string) string {
	for _, dir := range dirs {
		if importPath == dir || strings.HasPrefix(importPath, dir+"/") {
			return dir
		}
	}
	return ""
}

// mayImport returns why a package may not import another one of ours; empty if it may.
func mayImport(importer, imported string) string {
	from, to := path.Dir(importer), path.Dir(imported)
	program := dirOf(importer, programs)
	switch {
	case from == "test" || from == "hack": // nothing imports tests and tools
		return ""
	case strings.HasPrefix(imported, "cmd/") || strings.HasPrefix(imported, "hack/") || strings.HasPrefix(imported, "test/") && !strings.HasPrefix(importer, "test/"):
		return "nothing imports commands, tools and tests"
	case from == "cmd":
		return ""
	case strings.HasPrefix(importer, "api/"):
		if !strings.HasPrefix(imported, "api/") {
			return "the API imports nothing but itself"
		}
	case dirOf(importer, leaves) != "":
		if dirOf(imported, leaves) == "" {
			return "it is a leaf"
		}
	case strings.HasPrefix(importer, "internal/core/"):
		if to != "internal/core" && !strings.HasPrefix(imported, "api/") && imported != "internal/text" {
			return "the core imports the API and itself"
		}
	case program != "":
		if other := dirOf(imported, programs); other != "" && other != program {
			return "programs do not import each other"
		}
		if imported == "internal/demo" || imported == "internal/testenv" || imported == "internal/controlplane" {
			return "only tests and the demo start control planes"
		}
		if from == program && imported == program {
			return "imports point down"
		}
	case importer == "internal/demo":
		if imported == "internal/testenv" {
			return "only tests import it"
		}
	}
	return ""
}

func TestImportsPointDown(t *testing.T) {
	all := packages(t)
	if len(all) < 40 {
		t.Fatalf("found only %d packages", len(all))
	}
	for _, p := range all {
		for _, imported := range p.Imports {
			if ours, ok := strings.CutPrefix(imported, module); ok {
				if why := mayImport(p.ImportPath, ours); why != "" {
					t.Errorf("%s may not import %s: %s", p.ImportPath, ours, why)
				}
			}
			if dirOf(p.ImportPath, pure) != "" && matches(imported, impure) && !slices.Contains(allowedImpure, imported) {
				t.Errorf("%s is pure and may not import %s", p.ImportPath, imported)
			}
		}
	}
}

// The rules reject what they should.
func TestForbiddenImportsAreFound(t *testing.T) {
	for importer, imported := range map[string]string{
		"internal/core/noderule":  "internal/manager/node",
		"internal/core/podrule":   "internal/program",
		"internal/manager/node":   "internal/podgate",
		"internal/reporter":       "internal/manager/quota",
		"internal/manager/quota":  "internal/manager",
		"internal/text":           "internal/core/noderule",
		"internal/plugin/live":    "internal/controlplane",
		"internal/demo":           "internal/testenv",
		"internal/reporter/check": "cmd/readygate-reporter",
		"api/node/v1alpha1":       "internal/core/noderule",
		"internal/latch":          "test/e2e/lab",
	} {
		if mayImport(importer, imported) == "" {
			t.Errorf("%s may import %s", importer, imported)
		}
	}
}

// heavy are packages that the binaries in a cluster may not contain: the binary is a third of the memory of
// the manager.
var heavy = []string{"k8s.io/apiserver/*", "k8s.io/apiextensions-apiserver/pkg/apiserver/*", "github.com/google/cel-go/*"}

func TestBinariesContainNothingHeavy(t *testing.T) {
	for binary, alsoHeavy := range map[string][]string{
		"cmd/readygate-manager":  {"google.golang.org/grpc"},
		"cmd/readygate-reporter": {"k8s.io/client-go/*", "sigs.k8s.io/controller-runtime/*"},
	} {
		out, err := exec.Command("go", "list", "-deps", module+binary).Output()
		if err != nil {
			t.Fatalf("listing the imports of %s: %v", binary, err)
		}
		for dependency := range strings.Lines(string(out)) {
			if dependency = strings.TrimSpace(dependency); matches(dependency, heavy) || matches(dependency, alsoHeavy) {
				t.Errorf("%s contains %s", binary, dependency)
			}
		}
	}
}

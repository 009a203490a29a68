package architecture_test

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tests returns the names of the tests in the files that the Git pattern matches.
func tests(t *testing.T, pattern string) []string {
	t.Helper()
	out, err := exec.Command("git", "-C", "../..", "grep", "-hoE", `^func Test[A-Za-z0-9]+`, "--", pattern).Output()
	if err != nil {
		t.Fatalf("searching for tests: %v", err)
	}
	return strings.Fields(strings.ReplaceAll(string(out), "func ", ""))
}

// make test-all runs the tests in STORMS in test/integration, and skips them elsewhere: each exists there, and no
// other package has a test of this name.
func TestStormsAreTestsOfTheirPackage(t *testing.T) {
	storms := regexp.MustCompile(`(?m)^STORMS := \^\((.*)\)\$\$$`).FindStringSubmatch(read(t, "Makefile"))
	if storms == nil {
		t.Fatal("the Makefile has no STORMS")
	}
	everywhere, integration := tests(t, "*_test.go"), tests(t, "test/integration/*_test.go")
	for name := range strings.SplitSeq(storms[1], "|") {
		count := 0
		for _, test := range everywhere {
			if test == name {
				count++
			}
		}
		if count != 1 || !slices.Contains(integration, name) {
			t.Errorf("%s: %d tests have this name, want 1, in test/integration", name, count)
		}
	}
}

// The tests that the guarantees and the security model name exist.
func TestDocsNameTestsThatExist(t *testing.T) {
	all := tests(t, "*_test.go")
	for _, page := range []string{"docs/explanation/guarantees.md", "docs/explanation/security.md"} {
		named := regexp.MustCompile("`(Test[A-Za-z0-9]+)(…?)`").FindAllStringSubmatch(read(t, page), -1)
		if len(named) == 0 {
			t.Errorf("%s names no test", page)
		}
		for _, name := range named {
			if !slices.ContainsFunc(all, func(test string) bool { return test == name[1] || name[2] != "" && strings.HasPrefix(test, name[1]) }) {
				t.Errorf("%s names %s, which does not exist", page, name[0])
			}
		}
	}
}

package architecture_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The README and the security model name the test that shows each promise. These tests exist.
func TestDocsNameTestsThatExist(t *testing.T) {
	out, err := exec.Command("git", "-C", "../..", "grep", "-hoE", `^func Test[A-Za-z0-9]+`, "--", "*_test.go").Output()
	if err != nil {
		t.Fatalf("looking for tests: %v", err)
	}
	tests := strings.Fields(strings.ReplaceAll(string(out), "func ", ""))
	for _, page := range []string{"README.md", "docs/security.md"} {
		text, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile("`(Test[A-Za-z0-9]+)(…?)`").FindAllStringSubmatch(string(text), -1)
		if len(named) == 0 {
			t.Errorf("%s names no test", page)
		}
		for _, name := range named {
			if !slices.ContainsFunc(tests, func(test string) bool { return test == name[1] || name[2] != "" && strings.HasPrefix(test, name[1]) }) {
				t.Errorf("%s names %s, which does not exist", page, name[0])
			}
		}
	}
}

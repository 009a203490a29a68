package architecture_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The README says which test shows which promise: there are such tests.
func TestTheReadmeNamesTestsThatExist(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git", "-C", "../..", "grep", "-hoE", `^func Test[A-Za-z0-9]+`, "--", "*_test.go").Output()
	if err != nil {
		t.Fatalf("looking for tests: %v", err)
	}
	tests := strings.Fields(strings.ReplaceAll(string(out), "func ", ""))
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+)(…?)`").FindAllStringSubmatch(string(readme), -1)
	if len(named) == 0 {
		t.Fatal("the README names no test")
	}
	for _, name := range named {
		if !slices.ContainsFunc(tests, func(test string) bool { return test == name[1] || name[2] != "" && strings.HasPrefix(test, name[1]) }) {
			t.Errorf("there is no %s", name[0])
		}
	}
}

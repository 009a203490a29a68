package architecture_test

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../"

// files returns the tracked files that the Git patterns match, as paths from the root of the repository.
func files(t *testing.T, patterns ...string) []string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", root, "ls-files", "--"}, patterns...)...).Output()
	if err != nil {
		t.Fatalf("listing files: %v", err)
	}
	var found []string
	for _, name := range strings.Fields(string(out)) {
		if _, err := os.Stat(root + name); err == nil { // a deleted file stays in the index until the commit
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		t.Fatalf("no tracked file matches %v", patterns)
	}
	return found
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(root + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	fence     = regexp.MustCompile("(?ms)^[ ]*```.*?^[ ]*```[ ]*$")
	code      = regexp.MustCompile("`[^`\n]*`")
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	notAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	mark      = regexp.MustCompile(`^\s*<!-- (run: [a-z0-9-]+|not run: .+) -->$`)
	sentence  = regexp.MustCompile(`[^.][.!?] `)
	noEnd     = regexp.MustCompile(`\b(e\.g|i\.e|etc|vs)\. |^\d+\. `)
)

// anchors are the anchors of the headings of a page, as GitHub makes them.
func anchors(page string) []string {
	var found []string
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		title := link.ReplaceAllString(match[1], "]")
		anchor := strings.ReplaceAll(notAnchor.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		for n, free := 1, anchor; ; n++ {
			if !slices.Contains(found, free) {
				found = append(found, free)
				break
			}
			free = fmt.Sprint(anchor, "-", n)
		}
	}
	return found
}

// brokenLinks returns the relative links of a page that lead nowhere.
func brokenLinks(name, page string, find func(string) (string, bool)) []string {
	var broken []string
	for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(fence.ReplaceAllString(page, ""), ""), -1) {
		target, anchor, _ := strings.Cut(match[1], "#")
		if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
			continue
		}
		to := name
		if target != "" {
			to = path.Join(path.Dir(name), target)
		}
		text, exists := find(to)
		if !exists || anchor != "" && !slices.Contains(anchors(text), anchor) {
			broken = append(broken, match[1])
		}
	}
	return broken
}

// longCells returns the cells of tables that have more than one sentence.
func longCells(page string) []string {
	var long []string
	for line := range strings.Lines(fence.ReplaceAllString(page, "")) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		for cell := range strings.SplitSeq(strings.ReplaceAll(code.ReplaceAllString(line, "code"), `\|`, ""), "|") {
			if sentence.MatchString(noEnd.ReplaceAllString(strings.TrimSpace(cell), "")) {
				long = append(long, strings.TrimSpace(cell))
			}
		}
	}
	return long
}

// unmarked returns the numbers of the lines that begin a block of commands without a comment that says whether a
// test runs it.
func unmarked(page string) []int {
	var found []int
	before := ""
	for i, line := range strings.Split(page, "\n") {
		if strings.TrimSpace(line) == "```sh" && !mark.MatchString(before) {
			found = append(found, i+1)
		}
		before = line
	}
	return found
}

const maxLines = 250

func TestPages(t *testing.T) {
	find := func(name string) (string, bool) {
		_, err := os.Stat(root + name)
		text, _ := os.ReadFile(root + name) // a directory has no text
		return string(text), err == nil
	}
	for _, name := range files(t, "*.md") {
		page := read(t, name)
		for _, target := range brokenLinks(name, page, find) {
			t.Errorf("%s: link %s: no such file or heading", name, target)
		}
		generated := strings.HasPrefix(page, "<!-- Generated ")
		if lines := strings.Count(page, "\n"); lines > maxLines && !generated {
			t.Errorf("%s has %d lines, want at most %d", name, lines, maxLines)
		}
		for _, cell := range longCells(page) {
			t.Errorf("%s: a table cell has more than one sentence: %s", name, cell)
		}
	}
	for _, name := range files(t, "README.md", "docs/get-started/*.md", "docs/how-to/*.md", "examples/*.md") {
		for _, line := range unmarked(read(t, name)) {
			t.Errorf("%s:%d: a block of commands has no mark: write <!-- run: NAME --> or <!-- not run: REASON --> on the line before", name, line)
		}
	}
}

// banned are words that the Voice of the project replaces.
var banned = regexp.MustCompile(`\b([Nn]obody|(?i:somebody|whoever|anew|told of|mend(s|ed|ing)?|besides))\b`) // http.NoBody is none

// quotes are files that may have banned words, with the reason.
var quotes = map[string]string{
	"test/architecture/docs_test.go": "names the words",
}

func TestTextsNameTheActor(t *testing.T) {
	for _, name := range files(t) {
		if quotes[name] != "" {
			continue
		}
		for i, line := range strings.Split(read(t, name), "\n") {
			if word := banned.FindString(line); word != "" {
				t.Errorf("%s:%d: %q: name the component instead, in plain words", name, i+1, word)
			}
		}
	}
}

var metric = regexp.MustCompile(`"((?:node_readiness|pod_readiness|readygate)_[a-z_]+)"`)

// Every metric in the code is on its page.
func TestEveryMetricIsDocumented(t *testing.T) {
	page := read(t, "docs/reference/metrics.md")
	for _, name := range files(t, "internal/*.go") {
		for _, match := range metric.FindAllStringSubmatch(read(t, name), -1) {
			if !strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(match[1], "_") && !strings.Contains(page, "`"+match[1]+"`") {
				t.Errorf("docs/reference/metrics.md does not have %s of %s", match[1], name)
			}
		}
	}
}

// The checks find faults.
func TestFaultsOfPagesAreFound(t *testing.T) {
	other := func(name string) (string, bool) { return "# A Title: `x`\n# A title: x\n", name == "docs/b.md" }
	page := "[a](b.md) [b](b.md#a-title-x-1) [c](c.md) [d](b.md#no) `[e](e.md)` [f](https://example.com)"
	if broken := brokenLinks("docs/a.md", page, other); !slices.Equal(broken, []string{"c.md", "b.md#no"}) {
		t.Errorf("broken links are %v", broken)
	}
	if long := longCells("| One. | Two, e.g. this. | One. Two. |\n"); !slices.Equal(long, []string{"One. Two."}) {
		t.Errorf("long cells are %q", long)
	}
	if lines := unmarked("```sh\n```\n<!-- run: a -->\n```sh\n```\n<!-- not run: kind -->\n```sh\n```\n"); !slices.Equal(lines, []int{1}) {
		t.Errorf("unmarked blocks are on the lines %v", lines)
	}
}

// The oldest version of hack/kube/versions is the minimum everywhere.
func TestOneMinimumVersion(t *testing.T) {
	oldest := regexp.MustCompile(`(?m)^1\.\d+ `).FindString(read(t, "hack/kube/versions"))
	oldest = strings.TrimSpace(oldest)
	for name, text := range map[string]string{
		"charts/readygate/Chart.yaml": `kubeVersion: ">=` + oldest + `.0-0"`,
		"README.md":                   "Readygate needs Kubernetes " + oldest + " or newer",
		"charts/readygate/README.md":  "Kubernetes " + oldest + " or newer",
		"docs/how-to/install.md":      "You need Kubernetes " + oldest + " or newer",
		"docs/reference/versions.md":  "Readygate needs Kubernetes " + oldest + " or newer",
		"api/crds/readiness.node.x-k8s.io_nodereadinessrules.yaml": "readygate.dev/minimum-kubernetes-version: \"" + oldest + "\"",
		"api/crds/readygate.dev_podreadinessrules.yaml":            "readygate.dev/minimum-kubernetes-version: \"" + oldest + "\"",
	} {
		if !strings.Contains(read(t, name), text) {
			t.Errorf("%s does not contain %q, the oldest version in hack/kube/versions", name, text)
		}
	}
}

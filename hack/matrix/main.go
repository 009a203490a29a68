// Command matrix runs the tests that depend on the version of Kubernetes on API servers of several versions, and writes
// the results as a table. The binaries of each version are built or downloaded into bin/matrix/.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/readygate/readygate/internal/testenv"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

// page is the generated page.
const page = "docs/reference/version-matrix.md"

func run(names []string) error {
	all, err := columns()
	if err != nil {
		return err
	}
	columns, err := selected(all, names)
	if err != nil {
		return err
	}
	for _, c := range columns {
		for _, needed := range []*column{c, c.next} {
			if needed == nil {
				continue
			}
			if err := needed.prepare(); err != nil {
				return fmt.Errorf("building Kubernetes %s: %w", needed.title(), err)
			}
		}
	}
	failed := false
	for _, c := range columns {
		start := time.Now()
		if err := c.test(); err != nil {
			return fmt.Errorf("testing Kubernetes %s: %w", c.title(), err)
		}
		fmt.Printf("matrix: Kubernetes %s: %s, %s\n", c.title(), c.summary(), time.Since(start).Round(time.Second))
		failed = failed || len(c.failures) > 0
	}
	for _, c := range all {
		if err := c.load(); err != nil {
			fmt.Printf("matrix: %s is not written: there are no results of Kubernetes %s yet\n", page, c.title())
			return failure(failed)
		}
	}
	if err := os.WriteFile(page, []byte(table(all)), 0o644); err != nil { //nolint:gosec // a page of the docs
		return err
	}
	fmt.Printf("matrix: wrote %s, with the last results of every version\n", page)
	return failure(failed)
}

func failure(failed bool) error {
	if failed {
		return errors.New("tests failed: see above, and the logs in bin/matrix/")
	}
	return nil
}

// column is a version of Kubernetes, with or without the beta API of MutatingAdmissionPolicy.
type column struct {
	minor, version string
	beta, current  bool
	// next is the next minor version, with the beta API if this one has it; nil for the newest.
	next     *column
	run      tested
	failures []string
}

// tested are the results of a run.
type tested struct {
	Date, Commit string
	Results      map[string]string // by "package.Test"
}

// file has the results of the last run of the column.
func (c *column) file() string { return c.dir() + ".json" }

func (c *column) save() error {
	data, err := json.Marshal(c.run)
	if err != nil {
		return err
	}
	return os.WriteFile(c.file(), data, 0o600)
}

func (c *column) load() error {
	data, err := os.ReadFile(c.file())
	if err != nil {
		return err
	}
	return json.Unmarshal(data, &c.run)
}

func (c *column) title() string {
	if c.beta {
		return c.version + " with v1beta1"
	}
	return c.version
}

func (c *column) dir() string {
	if c.beta {
		return dirOf(c.version + "-v1beta1")
	}
	return dirOf(c.version)
}

func dirOf(name string) string { return filepath.Join("bin", "matrix", name) }

// columns reads hack/kube/versions, and adds the version of go.mod.
func columns() ([]*column, error) {
	data, err := os.ReadFile(filepath.Join("hack", "kube", "versions"))
	if err != nil {
		return nil, err
	}
	current, err := exec.Command("go", "-C", "hack/kube", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes").Output()
	if err != nil {
		return nil, fmt.Errorf("finding the version of k8s.io/kubernetes in hack/kube/go.mod: %w", err)
	}
	version := strings.TrimSpace(string(current))
	lines := append(strings.Split(string(data), "\n"), version[1:strings.LastIndex(version, ".")]+" "+version)
	var all []*column
	for _, line := range lines {
		fields := strings.Fields(line)
		if len(fields) != 2 || strings.HasPrefix(line, "#") {
			continue
		}
		all = append(all, &column{minor: fields[0], version: fields[1], current: fields[1] == version})
		if fields[0] == "1.34" || fields[0] == "1.35" {
			all = append(all, &column{minor: fields[0], version: fields[1], beta: true})
		}
	}
	for i, c := range all {
		for _, later := range all[i+1:] {
			if later.minor != c.minor && (c.next == nil || later.minor == c.next.minor && later.beta == c.beta) {
				c.next = later
			}
		}
	}
	return all, nil
}

// selected returns the columns with these names, and all columns of a minor version; none means all.
func selected(all []*column, names []string) ([]*column, error) {
	if len(names) == 0 {
		return all, nil
	}
	var columns []*column
	var known []string
	for _, c := range all {
		name := c.minor
		if c.beta {
			name += "+v1beta1"
		}
		if slices.Contains(names, c.minor) || slices.Contains(names, name) {
			columns = append(columns, c)
		}
		known = append(known, name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("VERSIONS contains %q, must be from: %s", name, strings.Join(known, " "))
		}
	}
	return columns, nil
}

// betaFlags serve MutatingAdmissionPolicy in 1.34 and 1.35.
const betaFlags = "--feature-gates=MutatingAdmissionPolicy=true --runtime-config=admissionregistration.k8s.io/v1beta1=true"

// prepare fills the directory of the column: the control plane in its version, and etcd, kubectl and KWOK of the project.
func (c *column) prepare() error {
	if err := c.build(); err != nil {
		return err
	}
	if !c.beta {
		return nil
	}
	if err := os.MkdirAll(c.dir(), 0o755); err != nil {
		return err
	}
	plain, err := filepath.Abs(dirOf(c.version))
	if err != nil {
		return err
	}
	for _, binary := range slices.Concat(ofVersion, ofProject) {
		if err := link(filepath.Join(plain, binary), filepath.Join(c.dir(), binary)); err != nil {
			return err
		}
	}
	server := filepath.Join(c.dir(), "kube-apiserver")
	if err := os.Remove(server); err != nil {
		return err
	}
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\" %s\n", filepath.Join(plain, "kube-apiserver"), betaFlags)
	return os.WriteFile(server, []byte(script), 0o755) //nolint:gosec // executable
}

var (
	ofVersion = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	ofProject = []string{"etcd", "kubectl", "kwok"}
)

// build fills the directory without the beta API. make kube has built the current version.
func (c *column) build() error {
	dir := dirOf(c.version)
	linked := ofProject
	if c.current {
		linked = slices.Concat(ofVersion, ofProject)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	} else {
		cmd := exec.Command("hack/kube/build", append([]string{dir}, ofVersion...)...) //nolint:gosec // of the project
		cmd.Env = append(os.Environ(), "KUBERNETES_VERSION="+c.version, "KUBEBUILDER_ASSETS=")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	project, err := filepath.Abs(cmp.Or(os.Getenv("KUBEBUILDER_ASSETS"), filepath.Join("bin", "kube")))
	if err != nil {
		return err
	}
	for _, binary := range linked {
		if err := link(filepath.Join(project, binary), filepath.Join(dir, binary)); err != nil {
			return err
		}
	}
	return nil
}

func link(to, name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Symlink(to, name)
}

// event is a line of go test -json.
type event struct{ Action, Test, Output string }

// test runs the tests of all rows, and keeps their output in a log.
func (c *column) test() error {
	assets, err := filepath.Abs(c.dir())
	if err != nil {
		return err
	}
	log, err := os.Create(c.dir() + ".log")
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // a log
	env := append(os.Environ(), "KUBEBUILDER_ASSETS="+assets)
	if c.next != nil {
		next, err := filepath.Abs(c.next.dir())
		if err != nil {
			return err
		}
		env = append(env, testenv.NextAssets+"="+next)
	}
	commit, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return fmt.Errorf("finding the commit: %w", err)
	}
	c.run = tested{Date: time.Now().UTC().Format(time.DateOnly), Commit: strings.TrimSpace(string(commit)), Results: map[string]string{}}
	for _, pkg := range packages() {
		fmt.Printf("matrix: Kubernetes %s: %s\n", c.title(), pkg)
		cmd := exec.Command("go", "test", "-json", "-vet=off", "-count=1", "-parallel", "3", "-timeout", "45m", "-run", "^("+strings.Join(testsOf(pkg), "|")+")$", "./test/"+pkg) //nolint:gosec // of the project
		cmd.Env = env
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return err
		}
		c.read(pkg, io.TeeReader(out, log))
		_ = cmd.Wait() // each failure has an event
	}
	for _, failure := range c.failures {
		fmt.Printf("matrix: Kubernetes %s: FAIL %s\n", c.title(), failure)
	}
	return c.save()
}

// read reads the results of the tests of a package, and keeps the output of those that fail.
func (c *column) read(pkg string, out io.Reader) {
	r := &reader{column: c, pkg: pkg, output: map[string]string{}, leftOut: map[string]bool{}, passed: map[string]bool{}, subtests: map[string]bool{}}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			e = event{Action: "output", Output: lines.Text() + "\n"}
		}
		r.read(e)
	}
	for _, test := range testsOf(pkg) {
		if c.run.Results[pkg+"."+test] == "" {
			c.failures = append(c.failures, fmt.Sprintf("%s.%s did not run\n%s", pkg, test, r.output[""]))
			r.output[""] = ""
		}
	}
}

// reader reads the events of a package.
type reader struct {
	*column
	pkg    string
	output map[string]string // by test; empty: of the package and of the compiler
	// leftOut are top-level tests that left something out, passed those with a subtest that passed.
	leftOut, passed, subtests map[string]bool
}

func (r *reader) read(e event) {
	r.output[e.Test] += e.Output
	top, _, sub := strings.Cut(e.Test, "/")
	r.leftOut[top] = r.leftOut[top] || strings.Contains(e.Output, testenv.Unavailable)
	switch {
	case e.Test == "":
	case e.Action == "skip" && !strings.Contains(r.output[e.Test], testenv.Unavailable):
		r.fail(e.Test, "was skipped for another reason")
	case e.Action == "fail":
		r.fail(e.Test, "failed")
	case sub:
		r.subtests[top] = true
		r.passed[top] = r.passed[top] || e.Action == "pass"
	case e.Action == "skip", e.Action == "pass":
		r.end(top, e.Action)
	}
}

// end sets the result of a top-level test that did not fail.
func (r *reader) end(test, action string) {
	name := r.pkg + "." + test
	switch {
	case r.run.Results[name] != "": // a subtest failed
	case action == "skip", r.subtests[test] && !r.passed[test]:
		r.run.Results[name] = "not available"
	case r.leftOut[test]:
		r.run.Results[name] = "in part"
	default:
		r.run.Results[name] = "passed"
	}
}

func (r *reader) fail(test, why string) {
	top, _, _ := strings.Cut(test, "/")
	r.run.Results[r.pkg+"."+top] = "failed"
	r.failures = append(r.failures, fmt.Sprintf("%s.%s %s\n%s", r.pkg, test, why, r.output[test]))
}

// result is the worst of the results of a row.
func (c *column) result(r row) string {
	found := map[string]bool{}
	for _, test := range r.tests {
		found[cmp.Or(c.run.Results[r.pkg+"."+test], "did not run")] = true
	}
	switch {
	case found["failed"]:
		return "failed"
	case found["did not run"]:
		return "did not run"
	case found["in part"] || found["passed"] && found["not available"]:
		return "in part"
	case found["passed"]:
		return "passed"
	}
	return "not available"
}

func (c *column) summary() string {
	count := map[string]int{}
	for _, r := range rows {
		count[c.result(r)]++
	}
	return fmt.Sprintf("%d passed, %d in part, %d not available, %d failed", count["passed"], count["in part"], count["not available"], count["failed"]+count["did not run"])
}

func table(columns []*column) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- Generated by make matrix. -->\n\n# Results by Kubernetes version\n\n*Which tests pass on which Kubernetes version?*\n\nGenerated by `make matrix`, which builds the API server of each version and runs the tests of each row on it. Columns with\n*v1beta1* are API servers with `%s`.\n\n", betaFlags)
	b.WriteString("- **passed**: all tests of the row passed.\n- **in part**: as passed, without the parts that need `MutatingAdmissionPolicy`.\n- **–**: not available there: the API server does not serve `MutatingAdmissionPolicy`, or there is no newer version to upgrade to.\n\n| |")
	for i := range columns {
		b.WriteString(" " + strings.Replace(columns[i].title(), "with ", "", 1) + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	b.WriteString("| *date, commit* |")
	for _, c := range columns {
		fmt.Fprintf(&b, " %s, %s |", c.run.Date, c.run.Commit)
	}
	b.WriteString("\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s |", r.title)
		for i := range columns {
			result := columns[i].result(r)
			switch result {
			case "not available":
				result = "–"
			case "failed", "did not run":
				result = "**" + result + "**"
			}
			fmt.Fprintf(&b, " %s |", result)
		}
		b.WriteString("\n")
	}
	return b.String()
}

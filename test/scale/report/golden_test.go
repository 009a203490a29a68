package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/readygate/readygate/test/scale/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

// madeUp is a run that never was: all scenarios, a subject called other that does not finish
// at 5,000 nodes, and budgets that are missed.
func madeUp(t *testing.T) report.Run {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var run report.Run
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&run); err != nil {
		t.Fatal(err)
	}
	for i := range run.Results {
		for j := range run.Results[i].Phases {
			run.Results[i].Phases[j].Work = 2 * time.Millisecond // the machine was as fast all the time
		}
	}
	return run
}

var notes = map[string]string{
	"memory": "A node in the cache has its labels, its taints and two conditions.",
	"limits": "15,000 nodes do not fit: etcd alone takes 6 GiB.",
	"method": "Each subject has a control plane of its own.",
}

func TestARunMakesThePageAndTheTableThatPeopleReviewed(t *testing.T) {
	run := madeUp(t)
	var table bytes.Buffer
	report.Table(&table, run)
	for name, got := range map[string][]byte{
		"table.txt":  table.Bytes(),
		"page.md":    report.Page(run, notes),
		"growth.svg": report.Growth(run),
		"ratios.svg": report.Ratios(run),
	} {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs: if it should, run go test ./test/scale/report -update, and look at it:\n%s", name, got)
		}
	}
}

func TestTheTableFitsATerminalOf100Columns(t *testing.T) {
	var table bytes.Buffer
	report.Table(&table, madeUp(t))
	for line := range bytes.Lines(table.Bytes()) {
		if width := utf8.RuneCount(bytes.TrimSpace(line)) + 2; width > 100 {
			t.Errorf("%d columns: %s", width, line)
		}
	}
}

package check_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/reporter/check"
)

func TestFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string, age time.Duration) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		changed := time.Now().Add(-age)
		if err := os.Chtimes(path, changed, changed); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := func(name, to string) string {
		path := filepath.Join(dir, name)
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	old := write("old", "node-1\n", time.Hour)
	future := write("future", "", -time.Hour)
	edge := write("edge", strings.Repeat("x", 64<<10-2)+"ok", 0)
	beyond := write("beyond", strings.Repeat("x", 64<<10-1)+"ok", 0)

	for name, test := range map[string]struct {
		spec check.File
		want check.Observation
	}{
		"that is there":                {check.File{Path: old}, healthy(check.ReasonFileOK, old+" exists")},
		"that is missing":              {check.File{Path: dir + "/none"}, unhealthy(check.ReasonFileMissing, dir+"/none does not exist")},
		"that leads nowhere":           {check.File{Path: link("dangling", "none")}, unhealthy(check.ReasonFileMissing, dir+"/dangling does not exist")},
		"that leads to one":            {check.File{Path: link("link", old)}, healthy(check.ReasonFileOK, dir+"/link exists")},
		"that leads to itself":         {check.File{Path: link("loop", "loop")}, failed(check.ReasonFileUnreadable, dir+"/loop cannot be accessed: too many levels of symbolic links")},
		"below something else":         {check.File{Path: old + "/x"}, failed(check.ReasonFileUnreadable, old+"/x cannot be accessed: not a directory")},
		"that is new enough":           {check.File{Path: old, NewerThan: check.For(2 * time.Hour)}, healthy(check.ReasonFileOK, old+" exists")},
		"that is too old":              {check.File{Path: old, NewerThan: check.For(30 * time.Minute)}, unhealthy(check.ReasonFileTooOld, old+" has not changed for more than 30m0s")},
		"that is of tomorrow":          {check.File{Path: future, NewerThan: check.For(time.Minute)}, healthy(check.ReasonFileOK, future+" exists")},
		"that has the text":            {check.File{Path: old, Contains: "node-1"}, healthy(check.ReasonFileOK, old+" contains the required text")},
		"that has another":             {check.File{Path: old, Contains: "node-2"}, unhealthy(check.ReasonFileLacksText, old+" does not contain the required text")},
		"that is old, and has it":      {check.File{Path: old, Contains: "node-1", NewerThan: check.For(time.Minute)}, unhealthy(check.ReasonFileTooOld, old+" has not changed for more than 1m0s")},
		"with the text at the limit":   {check.File{Path: edge, Contains: "ok"}, healthy(check.ReasonFileOK, edge+" contains the required text")},
		"with the text beyond it":      {check.File{Path: beyond, Contains: "ok"}, unhealthy(check.ReasonFileLacksText, beyond+" does not contain the required text")},
		"that is a directory":          {check.File{Path: dir}, healthy(check.ReasonFileOK, dir+" exists")},
		"that is one, and has no text": {check.File{Path: dir, Contains: "x"}, failed(check.ReasonFileUnreadable, dir+" is not a regular file, so its content cannot be checked")},
		"that is a FIFO":               {check.File{Path: fifo}, healthy(check.ReasonFileOK, fifo+" exists")},
		"that would block":             {check.File{Path: fifo, Contains: "x"}, failed(check.ReasonFileUnreadable, fifo+" is not a regular file, so its content cannot be checked")},
		"that never ends":              {check.File{Path: "/dev/zero", Contains: "x"}, failed(check.ReasonFileUnreadable, "/dev/zero is not a regular file, so its content cannot be checked")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, observed(t, check.Spec{File: &test.spec}, long), test.want)
		})
	}
}

func TestAFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs a file that also root cannot read")
	}
	expect(t, observed(t, check.Spec{File: &check.File{Path: "/proc/self/mem", Contains: "x"}}, long),
		failed(check.ReasonFileUnreadable, "/proc/self/mem cannot be read: input/output error"))
}

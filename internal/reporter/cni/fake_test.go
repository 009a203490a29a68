package cni_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/reporter/cni"
)

const fakeName = "fake"

// fake is the configuration of the plugin "fake": an action per verb.
type fake struct {
	Type string            `json:"type"`
	Log  string            `json:"log,omitempty"` // gets a line when a verb begins and one when it ends
	Do   map[string]action `json:"do,omitempty"`
}

// action is done in the order of its fields.
type action struct {
	KillParent string        `json:"killParent,omitempty"` // once: the file is removed with it
	Child      string        `json:"child,omitempty"`      // leave a child that holds the output; its pid to this file
	Sleep      time.Duration `json:"sleep,omitempty"`
	Flood      int           `json:"flood,omitempty"` // so many bytes
	Stdout     string        `json:"stdout,omitempty"`
	Stderr     string        `json:"stderr,omitempty"`
	Exit       int           `json:"exit,omitempty"`
}

// fakePlugin is the plugin. By default it succeeds and returns the result of the previous plugins.
func fakePlugin() int {
	var conf struct {
		fake
		PrevResult json.RawMessage `json:"prevResult"`
	}
	input, _ := io.ReadAll(os.Stdin)
	if err := json.Unmarshal(input, &conf); err != nil {
		fmt.Fprintln(os.Stderr, "fake: reading the configuration:", err)
		return 99
	}
	verb := os.Getenv("CNI_COMMAND")
	do := conf.Do[verb]
	note(conf.Log, verb+" begins "+os.Getenv("CNI_IFNAME")+" "+os.Getenv("CNI_ARGS"))
	if do.KillParent != "" && os.Remove(do.KillParent) == nil {
		_ = syscall.Kill(os.Getppid(), syscall.SIGKILL)
	}
	if do.Child != "" {
		child := exec.Command("sleep", "60")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			return 98
		}
		_ = os.WriteFile(do.Child, []byte(strconv.Itoa(child.Process.Pid)), 0o600)
	}
	time.Sleep(do.Sleep)
	for junk := bytes.Repeat([]byte("junk "), 1<<14); do.Flood > 0; do.Flood -= len(junk) {
		_, _ = os.Stdout.Write(junk)
	}
	if do.Stdout == "" && verb == "ADD" {
		if do.Stdout = string(conf.PrevResult); do.Stdout == "" {
			do.Stdout = `{"cniVersion": "1.0.0"}`
		}
	}
	note(conf.Log, verb+" ends") // before it writes to one who may be gone
	fmt.Print(fill(do.Stdout))
	fmt.Fprint(os.Stderr, fill(do.Stderr))
	return do.Exit
}

// fill inserts the values that differ per run.
func fill(text string) string {
	return strings.NewReplacer("$ID", os.Getenv("CNI_CONTAINERID"), "$NETNS", os.Getenv("CNI_NETNS"),
		"$PID", strconv.Itoa(os.Getpid()), "$NOW", time.Now().Format(time.RFC3339Nano), "$NANOS", strconv.Itoa(time.Now().Nanosecond()),
		"$HEX", fmt.Sprintf("%08x", time.Now().UnixNano()&0xffffffff), "$PORT", strconv.Itoa(30000+os.Getpid()%30000)).Replace(text)
}

func note(file, line string) {
	if file == "" {
		return
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = fmt.Fprintln(f, line)
		_ = f.Close()
	}
}

// plugins returns the plugins of a node with the plugin "fake" and no configuration.
func plugins(t *testing.T) cni.Plugins {
	t.Helper()
	p := cni.Plugins{ConfDir: t.TempDir(), BinDirs: []string{t.TempDir()}}
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(p.BinDirs[0], fakeName))
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// list is a configuration list as text.
func list(t *testing.T, version string, plugins ...any) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"cniVersion": version, "name": "pods", "plugins": plugins})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// on returns a fake with this action for the verb.
func on(verb string, do action) fake {
	return fake{Type: fakeName, Do: map[string]action{verb: do}}
}

package cni_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/reporter/cni"
)

func TestTheFirstFileByNameIsTheActiveOne(t *testing.T) {
	single := func(name string) string { return `{"cniVersion": "1.1.0", "name": "` + name + `", "type": "fake"}` }
	listed := func(name string) string {
		return `{"cniVersion": "1.1.0", "name": "` + name + `", "plugins": [{"type": "fake"}]}`
	}
	cases := map[string]struct {
		files map[string]string
		want  string
	}{
		"of two lists":                       {map[string]string{"20-b.conflist": listed("b"), "10-a.conflist": listed("a")}, "a"},
		"a single plugin before a list":      {map[string]string{"10-a.conf": single("a"), "20-b.conflist": listed("b")}, "a"},
		"a list before a single plugin":      {map[string]string{"20-a.conf": single("a"), "10-b.conflist": listed("b")}, "b"},
		"json too":                           {map[string]string{"05-a.json": single("a"), "10-b.conf": single("b")}, "a"},
		"as text, not as number":             {map[string]string{"9-a.conflist": listed("a"), "10-b.conflist": listed("b")}, "b"},
		"files of other names do not count":  {map[string]string{"00-x.conflist.tmp": "{", "01-README": "", "10-a.conflist": listed("a")}, "a"},
		"what comes later need not be right": {map[string]string{"10-a.conflist": listed("a"), "20-b.conflist": "{"}, "a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := plugins(t)
			for file, text := range tc.files {
				write(t, p.ConfDir, file, text)
			}
			if answer, err := p.Status(t.Context()); err != nil || answer.Network != tc.want || !answer.Asked {
				t.Errorf("got %+v and %v, want network %q", answer, err, tc.want)
			}
		})
	}
}

func TestNoConfigurationNamesTheDirectory(t *testing.T) {
	p := plugins(t)
	_, err := p.Status(t.Context())
	refused(t, err, cni.NoConfig, p.ConfDir)
	if err := os.Mkdir(filepath.Join(p.ConfDir, "10.conflist"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = p.Status(t.Context())
	refused(t, err, cni.NoConfig, p.ConfDir)
	_, err = cni.Plugins{ConfDir: "/no/such"}.Status(t.Context())
	refused(t, err, cni.NoConfig, "/no/such")
	write(t, p.ConfDir, "file", "")
	_, err = cni.Plugins{ConfDir: filepath.Join(p.ConfDir, "file")}.Status(t.Context())
	refused(t, err, cni.NoConfig, "not a directory")
}

func TestABadFirstFileIsNamed(t *testing.T) {
	cases := map[string]struct{ file, text, says string }{
		"not JSON":                  {"10.conflist", `{"name": "a", `, "unexpected end of JSON input"},
		"empty":                     {"10.conflist", ``, "unexpected end of JSON input"},
		"cut off":                   {"10.conf", `{"name": "a", "type":`, "unexpected end of JSON input"},
		"without a name":            {"10.conflist", `{"plugins": [{"type": "fake"}]}`, "no name"},
		"without plugins":           {"10.conflist", `{"name": "a"}`, "no plugin configs found"},
		"with no plugins":           {"10.conflist", `{"name": "a", "plugins": []}`, "no plugins in list"},
		"a plugin without a type":   {"10.conflist", `{"name": "a", "plugins": [{}]}`, "missing 'type'"},
		"single without a type":     {"10.conf", `{"name": "a"}`, "missing 'type'"},
		"a list that is not called": {"10.conf", `{"name": "a", "plugins": [{"type": "fake"}]}`, "*.conflist"},
		"a version that is none":    {"10.conflist", `{"name": "a", "cniVersion": "new", "plugins": [{"type": "fake"}]}`, `"new"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := plugins(t)
			write(t, p.ConfDir, tc.file, tc.text)
			write(t, p.ConfDir, "20.conflist", list(t, "1.1.0", fake{Type: fakeName}))
			p.ConfDir = shorten(t, p.ConfDir)
			_, err := p.Status(t.Context())
			refused(t, err, cni.BadConfig, tc.file, tc.says)
		})
	}
}

// shorten returns a short path of the directory.
func shorten(t *testing.T, dir string) string {
	t.Helper()
	parent, err := os.MkdirTemp("/tmp", "cni")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(parent) })
	link := filepath.Join(parent, "d")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	return link
}

func TestAPluginThatIsMissingIsNamedWithTheDirectories(t *testing.T) {
	for _, version := range []string{"0.3.1", "1.1.0"} {
		t.Run(version, func(t *testing.T) {
			p := plugins(t)
			p.BinDirs = []string{"/no/bin", shorten(t, p.BinDirs[0])}
			log := filepath.Join(t.TempDir(), "log")
			write(t, p.ConfDir, "10.conflist", list(t, version, fake{Type: fakeName, Log: log}, fake{Type: "lost"}))
			answer, err := p.Status(t.Context())
			refused(t, err, cni.PluginMissing, `plugin "lost" of network "pods" is not in `+strings.Join(p.BinDirs, ", "))
			if answer.Network != "pods" || answer.Asked {
				t.Errorf("got %+v, want a network that was not asked", answer)
			}
			if _, err := os.Stat(log); err == nil {
				t.Error("the plugin that is there was run")
			}
			write(t, p.BinDirs[1], "lost", "")
			_, err = p.Status(t.Context())
			refused(t, err, cni.PluginMissing, "is not executable")
		})
	}
}

func TestStatusIncludesPluginsInASeparateDirectory(t *testing.T) {
	p := plugins(t)
	write(t, p.ConfDir, "10.conflist", `{"cniVersion": "1.1.0", "name": "pods"}`)
	if err := os.Mkdir(filepath.Join(p.ConfDir, "pods"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(p.ConfDir, "pods"), "a.conf", `{"type": "fake", "do": {"STATUS": {"stdout": "{\"code\": 50}", "exit": 1}}}`)
	_, err := p.Status(t.Context())
	refused(t, err, cni.StatusNotReady)
}

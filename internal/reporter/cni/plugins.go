package cni

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/version"
)

// Plugins finds the CNI plugins of a node like the container runtime.
type Plugins struct {
	// ConfDir is the directory of the configuration. Empty means /etc/cni/net.d. The first .conflist, .conf or
	// .json file by name is the active one, as for containerd and CRI-O.
	ConfDir string
	// BinDirs are the directories of the plugins, searched in this order. Empty means /opt/cni/bin.
	BinDirs []string
}

func (p Plugins) confDir() string { return cmp.Or(p.ConfDir, "/etc/cni/net.d") }

func (p Plugins) binDirs() []string {
	if len(p.BinDirs) == 0 {
		return []string{"/opt/cni/bin"}
	}
	return p.BinDirs
}

// load reads the active configuration and finds its plugins. An invalid first file is a failure,
// as for containerd; CRI-O would try the next one.
func (p Plugins) load() (*libcni.NetworkConfigList, error) {
	dir := p.confDir()
	files, err := libcni.ConfFiles(dir, []string{".conflist", ".conf", ".json"})
	if err != nil {
		return nil, failure(NoConfig, "the CNI configuration cannot be read: %v", err)
	}
	if len(files) == 0 {
		return nil, failure(NoConfig, "no CNI configuration in %s: the network add-on has not written it yet, or is not installed", dir)
	}
	file := slices.Min(files)
	list, err := read(file)
	if err != nil {
		return nil, failure(BadConfig, "%s in %s: %s", filepath.Base(file), dir, strings.TrimPrefix(err.Error(), "error parsing configuration: "))
	}
	return list, p.find(list)
}

// read reads one file. The bytes of the returned list include the plugins of the list's own folder, which newer
// lists may have: a later DEL needs nothing else.
func read(file string) (*libcni.NetworkConfigList, error) {
	var list *libcni.NetworkConfigList
	var err error
	if filepath.Ext(file) == ".conflist" {
		list, err = libcni.NetworkConfFromFile(file)
	} else {
		list, err = readSingle(file)
	}
	if err != nil {
		return nil, err
	}
	if _, _, _, err := version.ParseVersion(list.CNIVersion); err != nil {
		return nil, err
	}
	whole := wholeList{Name: list.Name, CNIVersion: list.CNIVersion, Inlined: true}
	for _, plugin := range list.Plugins {
		whole.Plugins = append(whole.Plugins, plugin.Bytes)
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	return libcni.NetworkConfFromBytes(text)
}

// wholeList is a configuration list with all plugins inlined.
type wholeList struct {
	Name       string            `json:"name"`
	CNIVersion string            `json:"cniVersion,omitempty"`
	Inlined    bool              `json:"loadOnlyInlinedPlugins"`
	Plugins    []json.RawMessage `json:"plugins"`
}

// readSingle reads a file in the older format with a single plugin, and returns a list of one. It rejects a list
// in such a file, like the runtimes.
func readSingle(file string) (*libcni.NetworkConfigList, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	conf, err := libcni.NetworkPluginConfFromBytes(text)
	if err != nil {
		var list struct{ Plugins []any }
		if json.Unmarshal(text, &list) == nil && len(list.Plugins) > 0 {
			return nil, errors.New("a list of plugins must be in a file named *.conflist: rename it")
		}
		return nil, err
	}
	one := []*libcni.PluginConfig{conf}
	return &libcni.NetworkConfigList{Name: conf.Network.Name, CNIVersion: conf.Network.CNIVersion, Plugins: one}, nil
}

// find returns an error that names a missing plugin of the list. It does not search the plugin of "ipam": for
// some networks that is a value which only the first plugin uses.
func (p Plugins) find(list *libcni.NetworkConfigList) error {
	for _, plugin := range list.Plugins {
		kind := plugin.Network.Type
		path, err := (&runner{}).FindInPath(kind, p.binDirs())
		if err != nil {
			return failure(PluginMissing, "plugin %q of network %q is not in %s: install it there", kind, list.Name, strings.Join(p.binDirs(), ", "))
		}
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 == 0 {
			return failure(PluginMissing, "plugin %q of network %q is not executable: %s", kind, list.Name, path)
		}
	}
	return nil
}

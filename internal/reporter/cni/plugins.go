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

// Plugins are the CNI plugins of a node, as the container runtime finds them.
type Plugins struct {
	// ConfDir is where the configuration is. Empty means /etc/cni/net.d. The first file by
	// name is the active one, as containerd and CRI-O take it; of .conflist, .conf and .json.
	ConfDir string
	// BinDirs are where the plugins are, searched in this order. Empty means /opt/cni/bin.
	BinDirs []string
}

func (p Plugins) confDir() string { return cmp.Or(p.ConfDir, "/etc/cni/net.d") }

func (p Plugins) binDirs() []string {
	if len(p.BinDirs) == 0 {
		return []string{"/opt/cni/bin"}
	}
	return p.BinDirs
}

// load reads the active configuration and finds its plugins. A broken first file is a failure,
// as it is for containerd; CRI-O would go on to the next.
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

// read reads one file. What is in its plugins' own folder, which newer lists may have, is then
// in the list's bytes too: they are all that a later DEL needs.
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

// wholeList is a configuration list with nothing outside of it.
type wholeList struct {
	Name       string            `json:"name"`
	CNIVersion string            `json:"cniVersion,omitempty"`
	Inlined    bool              `json:"loadOnlyInlinedPlugins"`
	Plugins    []json.RawMessage `json:"plugins"`
}

// readSingle reads a file of the older kind: one plugin, which becomes a list of one. A list
// under such a name is refused, as the runtimes do.
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

// find returns an error that names a missing plugin of the list. The plugin of "ipam" is not looked for: for
// some networks it is a word that only the first plugin understands.
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

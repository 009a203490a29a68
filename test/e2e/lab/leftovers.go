package lab

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// settings are the kernel settings of the host that must be the same afterwards, and those of its network
// namespace that nodes change in their own.
var settings = append(slices.Collect(maps.Keys(hostSettings)), "net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables")

// readSettings are the host's settings as they are now; those that it does not have are empty.
func readSettings() map[string]string {
	values := map[string]string{}
	for _, setting := range settings {
		data, _ := os.ReadFile(filepath.Join("/proc/sys", setting))
		values[setting] = strings.TrimSpace(string(data))
	}
	return values
}

// leftovers names everything that an ended sandbox left on the host, and every changed setting.
func leftovers(dir string, before map[string]string) []string {
	var left []string
	if _, err := os.Stat(dir); err == nil {
		left = append(left, "the directory "+dir)
	}
	for _, h := range hierarchies() {
		if path := filepath.Join(cgroupRoot, h, filepath.Base(dir)); exists(path) {
			left = append(left, "the cgroup "+path)
		}
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || bytes.Contains(mounts, []byte(dir)) {
		left = append(left, "mounts of "+dir)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		environ, _ := os.ReadFile(filepath.Join(process, "environ")) // it may be gone
		if bytes.Contains(environ, []byte(directoryVar+"="+dir+"\x00")) {
			left = append(left, "the process "+filepath.Base(process))
		}
	}
	for setting, value := range readSettings() {
		if value != before[setting] {
			left = append(left, fmt.Sprintf("the setting %s, which was %q and is %q", setting, before[setting], value))
		}
	}
	return left
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

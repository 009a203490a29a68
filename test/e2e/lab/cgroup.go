package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const cgroupRoot = "/sys/fs/cgroup"

// controllers are the cgroup v1 controllers that kubelet and runc use; each has its own hierarchy.
var controllers = []string{"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids"}

// Unified reports whether the host has cgroup v2: one hierarchy with all controllers.
func Unified() bool { return exists(filepath.Join(cgroupRoot, "cgroup.controllers")) }

// missingControllers returns the controllers that kubelet and runc need and the host does not have.
func missingControllers() []string {
	if Unified() {
		data, _ := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.controllers"))
		available := strings.Fields(string(data))
		return slices.DeleteFunc([]string{"cpu", "memory", "pids"}, func(c string) bool { return slices.Contains(available, c) })
	}
	return slices.DeleteFunc(slices.Clone(controllers), func(c string) bool { return exists(filepath.Join(cgroupRoot, c, "cgroup.procs")) })
}

// hierarchies returns the hierarchies into which a process is moved: on v1 those of the controllers and those
// without a controller; on v2 the only one, which has no name.
func hierarchies() []string {
	if Unified() {
		return []string{""}
	}
	all := slices.Clone(controllers)
	for _, other := range []string{"systemd", "unified"} {
		if exists(filepath.Join(cgroupRoot, other, "cgroup.procs")) {
			all = append(all, other)
		}
	}
	return all
}

// joinCgroup makes a cgroup of this name in every hierarchy, if it is not there, and moves the
// process into it.
func joinCgroup(name string, pid int) error {
	for _, h := range hierarchies() {
		dir := filepath.Join(cgroupRoot, h, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		var err error
		switch h {
		case "cpuset":
			err = inheritCPUs(dir)
		case "":
			err = delegateTo(dir)
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("moving a process into a cgroup: %w", err)
		}
	}
	return nil
}

// delegateTo enables all controllers of cgroup v2 in a cgroup, from the root down.
func delegateTo(dir string) error {
	if dir == cgroupRoot {
		return nil
	}
	parent := filepath.Dir(dir)
	if err := delegateTo(parent); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for controller := range strings.FieldsSeq(string(data)) {
		if err := os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("enabling the controller %s below %s: %w", controller, parent, err)
		}
	}
	return nil
}

// leaveRoot moves a machine's first process, and so all its children, out of the machine's root
// cgroup: on v2 a cgroup with processes in it cannot give controllers to cgroups below it.
func leaveRoot() error {
	dir := filepath.Join(cgroupRoot, "init")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0o644)
}

// inheritCPUs copies the CPUs of the parent to a cpuset, which is created empty and then accepts no process.
func inheritCPUs(dir string) error {
	if filepath.Dir(dir) != filepath.Join(cgroupRoot, "cpuset") {
		if err := inheritCPUs(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// removeCgroups removes the cgroups of this name and all below them. The kernel needs a moment
// to remove killed processes from them.
func removeCgroups(name string) error {
	var err error
	for range 100 {
		err = nil
		for _, h := range hierarchies() {
			err = errors.Join(err, removeTree(filepath.Join(cgroupRoot, h, name)))
		}
		if err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// removeTree removes directories, the innermost first; the kernel removes their files.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if entry.IsDir() {
			err = errors.Join(err, removeTree(filepath.Join(dir, entry.Name())))
		}
	}
	return errors.Join(err, os.Remove(dir))
}

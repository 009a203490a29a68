package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

const cgroupRoot = "/sys/fs/cgroup"

// controllers are those that kubelet and runc use; each is a hierarchy of its own.
var controllers = []string{"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids"}

func haveControllers() bool {
	return !slices.ContainsFunc(controllers, func(c string) bool {
		_, err := os.Stat(filepath.Join(cgroupRoot, c, "cgroup.procs"))
		return err != nil
	})
}

// hierarchies are where processes are to be moved: the controllers, and those without any.
func hierarchies() []string {
	all := slices.Clone(controllers)
	for _, other := range []string{"systemd", "unified"} {
		if _, err := os.Stat(filepath.Join(cgroupRoot, other, "cgroup.procs")); err == nil {
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
		if h == "cpuset" {
			if err := inheritCPUs(dir); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("moving a process into a cgroup: %w", err)
		}
	}
	return nil
}

// inheritCPUs gives a cpuset, which is born empty and then takes no process, what its parent has.
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

// removeCgroups removes the cgroups of this name and all below them. The kernel takes a moment
// to empty those of processes that were just killed.
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

// removeTree removes directories, the innermost first; their files are the kernel's.
func removeTree(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	for _, dir := range slices.Backward(dirs) {
		if removed := os.Remove(dir); !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return err
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The limits of the guide's sidecar.
const (
	sidecar      = "the guide's limits (10m CPU, 32Mi)"
	cpuPeriod    = 100_000 // µs, as the kubelet sets it
	cpuQuota     = 1_000
	memoryLimit  = 32 << 20
	hierarchy    = "/sys/fs/cgroup"
	groupPattern = "reporterbench-*"
)

// limits make control groups with the guide's limits: one for each process.
type limits struct {
	parents []parent
}

// parent is a control group of ours, below which groups are made.
type parent struct {
	dir    string
	values map[string]string // files of a group, and what is written to them
}

// newLimits finds where groups can be made. An error says why they cannot.
func newLimits() (*limits, error) {
	l, err := newLimitsV2()
	if err == nil {
		return l, nil
	}
	l, errV1 := newLimitsV1()
	if errV1 == nil {
		return l, nil
	}
	return nil, fmt.Errorf("cgroup v2: %w; cgroup v1: %w", err, errV1)
}

// newLimitsV2 looks from our own group upwards for one whose children have both controllers.
func newLimitsV2() (*limits, error) {
	own, err := ownGroup("")
	if err != nil {
		return nil, err
	}
	for dir := filepath.Join(hierarchy, own); strings.HasPrefix(dir, hierarchy); dir = filepath.Dir(dir) {
		given, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if err != nil {
			return nil, err
		}
		controllers := strings.Fields(string(given))
		if !slices.Contains(controllers, "cpu") || !slices.Contains(controllers, "memory") {
			continue
		}
		ours, err := os.MkdirTemp(dir, groupPattern)
		if err != nil {
			return nil, err
		}
		l := &limits{parents: []parent{{dir: ours, values: map[string]string{
			"cpu.max": fmt.Sprintf("%d %d", cpuQuota, cpuPeriod), "memory.max": strconv.Itoa(memoryLimit),
		}}}}
		if err := os.WriteFile(filepath.Join(ours, "cgroup.subtree_control"), []byte("+cpu +memory"), 0); err != nil {
			return nil, errors.Join(err, l.remove())
		}
		return l, nil
	}
	return nil, fmt.Errorf("no group from %s upwards gives its children the controllers cpu and memory", own)
}

// newLimitsV1 makes a group below our own, in the hierarchies of both controllers.
func newLimitsV1() (*limits, error) {
	l := &limits{}
	for _, controller := range []struct {
		name   string
		values map[string]string
	}{
		{"cpu", map[string]string{"cpu.cfs_period_us": strconv.Itoa(cpuPeriod), "cpu.cfs_quota_us": strconv.Itoa(cpuQuota)}},
		{"memory", map[string]string{"memory.limit_in_bytes": strconv.Itoa(memoryLimit)}},
	} {
		own, err := ownGroup(controller.name)
		if err != nil {
			return nil, errors.Join(err, l.remove())
		}
		dir, err := os.MkdirTemp(filepath.Join(hierarchy, controller.name, own), groupPattern)
		if err != nil {
			return nil, errors.Join(err, l.remove())
		}
		l.parents = append(l.parents, parent{dir, controller.values})
	}
	return l, nil
}

// ownGroup is the path of our own group in the hierarchy of a controller of v1; in that of v2
// if it is empty.
func ownGroup(controller string) (string, error) {
	lines, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(lines)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && slices.Contains(strings.Split(fields[1], ","), controller) {
			return fields[2], nil
		}
	}
	return "", fmt.Errorf("/proc/self/cgroup has no line for %q", controller)
}

// group makes a group with the limits, and returns the directories that it consists of.
func (l *limits) group(name string) ([]string, error) {
	var dirs []string
	for _, p := range l.parents {
		dir := filepath.Join(p.dir, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, errors.Join(err, removeGroup(dirs))
		}
		dirs = append(dirs, dir)
		for file, value := range p.values {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil {
				return nil, errors.Join(err, removeGroup(dirs))
			}
		}
	}
	return dirs, nil
}

// removeGroup removes a group whose processes have ended.
func removeGroup(dirs []string) error {
	var errs []error
	for _, dir := range dirs {
		errs = append(errs, os.Remove(dir))
	}
	return errors.Join(errs...)
}

func (l *limits) remove() error {
	var dirs []string
	for _, p := range l.parents {
		dirs = append(dirs, p.dir)
	}
	return removeGroup(dirs)
}

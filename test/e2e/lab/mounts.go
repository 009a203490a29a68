package lab

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// mountAll mounts the file systems of the machine: the host's programs are read-only.
func (m *machine) mountAll() error {
	// Kubelets need shared mounts, so that containers see mounts in volumes; this mount namespace contains them.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing mounts: %w", err)
	}
	if err := mount("proc", "/proc", "proc", ""); err != nil {
		return err
	}
	for _, step := range []func() error{m.mountOverlays, m.mountSettings, m.mountClockSpeed, mountSys, mountRun, m.mountDisks} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// mountOverlays lets the machine read the host's files and write its own.
func (m *machine) mountOverlays() error {
	for _, dir := range []string{"etc", "opt", "var"} {
		upper, work := filepath.Join(m.Disk, "overlay", dir), filepath.Join(m.Disk, "overlay", dir+".work")
		for _, d := range []string{upper, work} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				return err
			}
		}
		if err := mount("overlay", "/"+dir, "overlay", fmt.Sprintf("lowerdir=/%s,upperdir=%s,workdir=%s", dir, upper, work)); err != nil {
			return err
		}
	}
	return os.WriteFile("/etc/machine-id", []byte(m.machineID()), 0o644)
}

// hostSettings are kernel settings of the whole host, with the values that a kubelet or kube-proxy would set.
var hostSettings = map[string]string{
	"kernel/panic":                   "10\n",
	"kernel/panic_on_oops":           "1\n",
	"kernel/keys/root_maxkeys":       "1000000\n",
	"kernel/keys/root_maxbytes":      "25000000\n",
	"vm/overcommit_memory":           "1\n",
	"vm/panic_on_oom":                "0\n",
	"net/netfilter/nf_conntrack_max": "262144\n",
}

// mountSettings mounts files over settings of the whole host that a kubelet sets at its start, with the
// values that the kubelet expects. Every boot has its own boot ID.
func (m *machine) mountSettings() error {
	bootID, err := os.ReadFile("/proc/sys/kernel/random/uuid")
	if err != nil {
		return err
	}
	values := maps.Clone(hostSettings)
	values["kernel/random/boot_id"] = string(bootID)
	for setting, value := range values {
		path := filepath.Join("/proc/sys", setting)
		if _, err := os.Stat(path); os.IsNotExist(err) {
			continue // this kernel does not have it, and the kubelet does without
		}
		file := filepath.Join(m.Disk, "settings", setting)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(value), 0o644); err != nil {
			return err
		}
		if err := bind(file, path); err != nil {
			return err
		}
	}
	return nil
}

// mountClockSpeed adds the clock speed where the kernel does not report one, as user-mode Linux does
// not: a kubelet does not start without.
func (m *machine) mountClockSpeed() error {
	const path = "/proc/cpuinfo"
	info, err := os.ReadFile(path)
	if err != nil || runtime.GOARCH != "amd64" || bytes.Contains(info, []byte("cpu MHz")) {
		return err
	}
	file := filepath.Join(m.Disk, "settings", "cpuinfo")
	if err := os.WriteFile(file, append([]byte("cpu MHz\t\t: 1000.000\n"), info...), 0o644); err != nil {
		return err
	}
	return bind(file, path)
}

// mountSys shows the machine its own network devices and its own cgroups.
func mountSys() error {
	all := hierarchies() // asked for before /sys is covered
	if err := mount("sysfs", "/sys", "sysfs", ""); err != nil {
		return err
	}
	if all[0] == "" {
		if err := mount("cgroup2", cgroupRoot, "cgroup2", ""); err != nil {
			return err
		}
		return leaveRoot()
	}
	if err := mount("tmpfs", cgroupRoot, "tmpfs", "mode=755"); err != nil {
		return err
	}
	for _, h := range all {
		options := h
		switch h {
		case "systemd":
			options = "none,name=systemd"
		case "unified": // the host has v1 controllers, so a node is one of cgroup v1
			continue
		}
		dir := filepath.Join(cgroupRoot, h)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if err := mount("cgroup", dir, "cgroup", options); err != nil {
			return err
		}
	}
	return nil
}

// mountRun mounts the directories that do not survive a reboot.
func mountRun() error {
	if err := mount("tmpfs", "/run", "tmpfs", "mode=755"); err != nil {
		return err
	}
	for _, dir := range []string{"/run/netns", "/run/lock"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) mountDisks() error {
	for _, dir := range disks {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := bind(filepath.Join(m.Disk, dir), dir); err != nil {
			return err
		}
	}
	return nil
}

func mount(source, target, kind, options string) error {
	if err := unix.Mount(source, target, kind, 0, options); err != nil {
		return fmt.Errorf("mounting %s (%s, %s): %w", target, kind, options, err)
	}
	return nil
}

func bind(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s at %s: %w", source, target, err)
	}
	return nil
}

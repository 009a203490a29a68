// Package lab runs a cluster on one machine: a control plane, and nodes that each have
// a kubelet, containerd, runc and kube-proxy in namespaces of their own, on a network that
// only the lab can reach. Tests can power off, reboot, wipe and disconnect nodes, and break their CNI.
//
// It leaves nothing behind, however a test ends. All processes run in one PID namespace, whose
// first process is the test itself (see sandbox.go): when the test ends, the kernel ends every
// process in the namespace, and removes their networks and mounts. The process that waits outside
// removes cgroups and files.
//
// Nothing on the host changes: nodes see the host's files through overlays, and files where a
// kubelet would write settings that are the whole machine's. One exception: on cgroup v2 the lab
// enables the host's controllers for the cgroups below the root, as runc does, and they stay enabled.
package lab

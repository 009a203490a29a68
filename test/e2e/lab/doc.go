// Package lab is a cluster of real machines on one: a control plane, and nodes that each have
// a kubelet, containerd, runc and kube-proxy in namespaces of their own, on a network that
// nobody else can reach. Its nodes can be powered off, rebooted, wiped, cut off, and their CNI
// be broken.
//
// It leaves nothing behind, however a test ends. All of it runs in one pid namespace, whose
// first process is the test itself (see sandbox.go): when that ends, the kernel ends every
// process in it, and with them go their networks and mounts. What the kernel leaves, cgroups
// and files, the process that waits outside removes.
//
// Nothing on the host changes: nodes see the host's files through overlays, and files where a
// kubelet would write settings that are the whole machine's. One exception: on cgroup v2 the lab
// enables the host's controllers for the cgroups below the root, as runc does, and they stay enabled.
package lab

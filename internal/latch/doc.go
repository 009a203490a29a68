// Package latch is the first init container of a held pod. It waits until podgate writes a key (package latchkey) to an
// annotation of the pod, and the kubelet delivers the key in a downward API volume. A latch needs no network, no token
// and no access to its node.
//
// It exits with status 0 only when it is open: a key is for its sandbox, a key is for every sandbox, or its own deadline
// has passed. A key for this address and boot that looks older than the sandbox is accepted only after settlePeriod. Any
// other problem is logged, and the latch continues to wait: the kubelet restarts a failed init container with growing
// backoff, which would delay the pod for longer than the network does.
//
// A latch runs in every held pod, so its cost is minimal: about 2 MiB resident, a binary of less than 2 MiB, and the read
// of one small file in memory when it changes, and once per second. For this reason it imports few packages, and not
// fmt: a test has the list.
package latch

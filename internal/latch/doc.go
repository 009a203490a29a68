// Package latch waits, as the first init container of a pod, until the pod's network is ready. Then
// podgate writes a key (package latchkey) to an annotation of the pod; the kubelet brings it here,
// by a downward API volume. So a latch needs no network, no token and nothing of its node.
//
// It exits with status 0 only when it was opened: by a key for the sandbox that it is in, by one for every
// sandbox, or by its own deadline. A key that is for this sandbox by address and boot, and looks older
// than it, is accepted only after a while. Any other problem is logged, and the latch waits: a failed
// init container is restarted with growing backoff, which would keep the pod for longer than the
// network does.
//
// One runs in every held pod, so it is made to cost next to nothing: about 2 MiB resident, a binary
// of less than 2 MiB, and the read of one small file in memory when it changes, and once a second.
// That is why it imports so little, and not even fmt: a test has the list.
package latch

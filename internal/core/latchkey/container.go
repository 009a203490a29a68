package latchkey

// How the API server puts a latch into a pod, and how the latch finds its key there.
const (
	// Annotation is the one that has the key. The API of rules has the same name for it: it would make
	// the latch large.
	Annotation = "readygate.dev/latch"

	// Command is the latch in its image.
	Command = "/readygate-latch"

	// Volume is where the downward API volume is mounted, and File the file in it that has the value
	// of the annotation.
	Volume = "/var/run/readygate/latch"
	File   = "key"

	// PodIP is the variable with the pod's address in this sandbox, from status.podIP.
	PodIP = "READYGATE_POD_IP"
	// Deadline is after how many seconds the latch opens by itself. Empty or unset: never.
	Deadline = "READYGATE_DEADLINE"
	// PodName is the pod, from metadata.name. Unset: HOSTNAME, which is mostly the same.
	PodName = "READYGATE_POD_NAME"
	// PodNamespace is the pod's namespace, from metadata.namespace. It may be unset.
	PodNamespace = "READYGATE_POD_NAMESPACE"
)

package latchkey

// Names, paths and variables of the latch container that the API server adds to a pod.
const (
	// Annotation contains the key. It equals LatchAnnotation of the API package, whose import would make the latch large.
	Annotation = "readygate.dev/latch"

	// Command is the path of the latch in its image.
	Command = "/readygate-latch"

	// Volume is the mount path of the downward API volume, and File the file in it with the value of the annotation.
	Volume = "/var/run/readygate/latch"
	File   = "key"

	// PodIP is the variable with the pod's address in this sandbox, from status.podIP.
	PodIP = "READYGATE_POD_IP"
	// Deadline is the variable with the seconds after which the latch opens without a key. Empty or unset: never.
	Deadline = "READYGATE_DEADLINE"
	// PodName is the variable with the pod's name, from metadata.name. Unset: HOSTNAME, which is usually the same.
	PodName = "READYGATE_POD_NAME"
	// PodNamespace is the variable with the pod's namespace, from metadata.namespace. It may be unset.
	PodNamespace = "READYGATE_POD_NAMESPACE"
)

package podrule

import (
	"cmp"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
)

// Kind is how a component reports its state.
type Kind string

// The kinds of components. The first two are read from the API, the others are probed on the node.
const (
	PodCondition  Kind = "podCondition"
	NodeCondition Kind = "nodeCondition"
	File          Kind = "file"
	HTTP          Kind = "http"
	Reach         Kind = "reach"
)

// Component is a compiled component of a rule: it programs the network of pods.
type Component struct {
	Name string
	Kind Kind

	// condition and status are those of a podCondition or a nodeCondition.
	condition string
	status    corev1.ConditionStatus
	// path and contains are templates of a file, and address one of http.
	path, contains, address string
	// port is that of reach.
	port int32
}

func newComponent(c *v1alpha1.Component) Component {
	component := Component{Name: c.Name}
	switch {
	case c.PodCondition != nil:
		component.Kind, component.condition, component.status = PodCondition, c.PodCondition.Type, cmp.Or(c.PodCondition.Status, corev1.ConditionTrue)
	case c.NodeCondition != nil:
		component.Kind, component.condition, component.status = NodeCondition, c.NodeCondition.Type, cmp.Or(c.NodeCondition.Status, corev1.ConditionTrue)
	case c.File != nil:
		component.Kind, component.path, component.contains = File, c.File.Path, c.File.Contains
	case c.HTTP != nil:
		component.Kind, component.address = HTTP, c.HTTP.URL
	case c.Reach != nil:
		component.Kind, component.port = Reach, cmp.Or(c.Reach.Port, v1alpha1.DefaultReachPort)
	}
	return component
}

// Probe is a check of a component for one pod that podgate runs on the node. Equal probes have the same result.
type Probe struct {
	Kind Kind
	// Path is the file to read, and Contains what it must contain.
	Path, Contains string
	// URL is the URL of the GET request.
	URL string
	// Address is the host and port to connect to.
	Address string
}

// Answer is the result of a component for a pod.
type Answer struct {
	// Yes means that the component is ready for the pod.
	Yes bool
	// Why is a short explanation if the component is not ready. It is constant while nothing changes.
	Why string
	// Noes is the number of failures in a row.
	Noes int
}

// Refusals is the number of failures in a row after which a component that is probed closes an open gate: a single
// failed probe does not.
const Refusals = 3

// probe returns the probe for the pod; false if the component is not probed.
func (c *Component) probe(pod *corev1.Pod) (Probe, bool) {
	switch c.Kind {
	case File:
		fill := fillerOf(pod, inPath)
		return Probe{Kind: File, Path: fill(c.path), Contains: fillerOf(pod, asIs)(c.contains)}, true
	case HTTP:
		return Probe{Kind: HTTP, URL: fillerOf(pod, url.PathEscape)(c.address)}, true
	case Reach:
		return Probe{Kind: Reach, Address: hostPort(pod.Status.PodIP, c.port)}, true
	}
	return Probe{}, false
}

// hostPort is an address with a port.
func hostPort(ip string, port int32) string {
	if strings.Contains(ip, ":") {
		ip = "[" + ip + "]"
	}
	return ip + ":" + itoa(port)
}

// Unfilled explains which address of a template the pod does not have; empty if it has all.
func (c *Component) Unfilled(pod *corev1.Pod) string {
	v4, v6 := families(pod)
	for _, template := range []string{c.path, c.contains, c.address} {
		switch {
		case v4 == "" && strings.Contains(template, "{ipv4}"):
			return "the pod has no IPv4 address"
		case v6 == "" && strings.Contains(template, "{ipv6}"):
			return "the pod has no IPv6 address"
		}
	}
	return ""
}

// For describes how the component reports its state for one pod: as String, with the values of the pod in place of the
// names in braces, once the pod has an address.
func (c *Component) For(pod *corev1.Pod) string {
	filled := *c
	if probe, ok := c.probe(pod); ok && pod.Status.PodIP != "" && c.Unfilled(pod) == "" {
		filled.path, filled.address = probe.Path, probe.URL
	}
	return filled.String()
}

// NeedsStart reports whether the component becomes ready only after containers of the pod have started. A gate that
// holds the start of containers would never open with it.
func (c *Component) NeedsStart() bool {
	return c.Kind == PodCondition && c.status != corev1.ConditionFalse && (c.condition == string(corev1.ContainersReady) || c.condition == string(corev1.PodInitialized))
}

// fillerOf returns a function that replaces the names in braces in a template with the values of the pod.
func fillerOf(pod *corev1.Pod, escape func(string) string) func(string) string {
	v4, v6 := families(pod)
	return strings.NewReplacer("{name}", escape(pod.Name), "{namespace}", escape(pod.Namespace), "{uid}", escape(string(pod.UID)),
		"{ip}", escape(pod.Status.PodIP), "{ipv4}", escape(v4), "{ipv6}", escape(v6)).Replace
}

func asIs(word string) string { return word }

// inPath keeps a value within one element of a path. Names of pods have no slash anyway.
func inPath(word string) string { return strings.ReplaceAll(word, "/", "_") }

// families are the pod's first addresses of each family; empty if it has none.
func families(pod *corev1.Pod) (v4, v6 string) {
	for _, ip := range pod.Status.PodIPs {
		if strings.Contains(ip.IP, ":") {
			v6 = cmp.Or(v6, ip.IP)
		} else {
			v4 = cmp.Or(v4, ip.IP)
		}
	}
	return v4, v6
}

// String describes how the component reports its state, e.g. "pod condition policy.example.com/programmed".
func (c *Component) String() string {
	switch c.Kind {
	case PodCondition:
		return "pod condition " + c.condition
	case NodeCondition:
		return "node condition " + c.condition
	case File:
		return "file " + c.path
	case HTTP:
		return c.address
	case Reach:
		return "TCP port " + itoa(c.port) + ", from the node"
	}
	return string(c.Kind)
}

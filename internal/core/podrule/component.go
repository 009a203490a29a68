package podrule

import (
	"cmp"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
)

// Kind says how a component answers.
type Kind string

// The kinds of components. The first two are read from the API, the others are asked on the node.
const (
	PodCondition  Kind = "podCondition"
	NodeCondition Kind = "nodeCondition"
	File          Kind = "file"
	HTTP          Kind = "http"
	Reach         Kind = "reach"
)

// Component is something that programs the network of pods.
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

// Probe is a question to a component about one pod that is asked on the node. Two that are equal have
// the same answer.
type Probe struct {
	Kind Kind
	// Path is the file to read, and Contains what it must contain.
	Path, Contains string
	// URL is what to get.
	URL string
	// Address is the host and port to connect to.
	Address string
}

// Answer is what a component says of a pod.
type Answer struct {
	Yes bool
	// Why is why not, in a few words that stay the same while nothing changes.
	Why string
	// Noes is how often in a row the answer has been no.
	Noes int
}

// Refusals is how often in a row a component that is asked must say no to close an open gate: one
// question that fails is none.
const Refusals = 3

// probe is the question to ask about the pod; false if the component is not asked.
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

// Unfilled says which address a template names that the pod does not have; empty if it has all.
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

// For says how the component answers about one pod: with what the pod has in the place of what a template
// says in braces, as far as it has it yet.
func (c *Component) For(pod *corev1.Pod) string {
	filled := *c
	if probe, ok := c.probe(pod); ok && pod.Status.PodIP != "" && c.Unfilled(pod) == "" {
		filled.path, filled.address = probe.Path, probe.URL
	}
	return filled.String()
}

// NeedsStart says that the component says yes only when containers of the pod have started: no gate that
// holds their start opens by it.
func (c *Component) NeedsStart() bool {
	return c.Kind == PodCondition && c.status != corev1.ConditionFalse && (c.condition == string(corev1.ContainersReady) || c.condition == string(corev1.PodInitialized))
}

// fillerOf fills what a template says in braces with what the pod has.
func fillerOf(pod *corev1.Pod, escape func(string) string) func(string) string {
	v4, v6 := families(pod)
	return strings.NewReplacer("{name}", escape(pod.Name), "{namespace}", escape(pod.Namespace), "{uid}", escape(string(pod.UID)),
		"{ip}", escape(pod.Status.PodIP), "{ipv4}", escape(v4), "{ipv6}", escape(v6)).Replace
}

func asIs(word string) string { return word }

// inPath keeps a word from being more than one part of a path. Names of pods have no slash anyway.
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

// String says how the component answers, e.g. "pod condition policy.example.com/programmed".
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

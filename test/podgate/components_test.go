package podgate_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/boot"
	"github.com/readygate/readygate/internal/core/latchkey"
	"github.com/readygate/readygate/internal/podgate"
)

// unreachable is an address to which the kernel itself opens no connection, whatever the network is
// like: the broadcast address of loopback.
const unreachable = "127.255.255.255"

// host is the file system of a node.
type host struct {
	t    *testing.T
	root string
}

// newHost has a directory for what components write.
func newHost(t *testing.T) host {
	t.Helper()
	h := host{t: t, root: t.TempDir()}
	if err := os.Mkdir(filepath.Join(h.root, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	return h
}

// write writes a file below /run of the node.
func (h host) write(name, content string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.root, "run", name), []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h host) remove(name string) {
	h.t.Helper()
	if err := os.Remove(filepath.Join(h.root, "run", name)); err != nil {
		h.t.Fatal(err)
	}
}

// mounted lets an agent see the node's files.
func (h host) mounted(o *podgate.Options) { o.HostRoot = h.root }

// endpoint is a component on the node that serves the readiness of pods by path.
type endpoint struct {
	url   string
	ready sync.Map
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := e.ready.Load(r.URL.Path); !ok {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

func byHTTP(name, url string) v1alpha1.Component {
	return v1alpha1.Component{Name: name, HTTP: &v1alpha1.HTTPComponent{URL: url}}
}

// scene is a component that is not ready for a pod at first, and then is.
type scene struct {
	component v1alpha1.Component
	// before is what is there before the pod has a sandbox; nil: nothing.
	before func(*corev1.Pod)
	// why is what is said of the component until then.
	why string
	// then makes it say yes.
	then func(*corev1.Pod)
}

const address, laterAddress = "127.0.3.1", "127.0.3.2"

// scenes has one scene per kind of component, and per invalid response.
func (s *stage) scenes(h host, e *endpoint) map[string]scene {
	const attached, pending, flannel, stale = "net.example.com/attached", "net.example.com/pending", "net.example.com/FlannelReady", "net.example.com/Stale"
	nodeCondition := func(kind string) v1alpha1.Component {
		return v1alpha1.Component{Name: "it", NodeCondition: &v1alpha1.ConditionComponent{Type: kind}}
	}
	return map[string]scene{
		"pod-condition": {
			component: byPodCondition("it", attached), why: "the pod has no condition " + attached,
			then: func(p *corev1.Pod) { s.condition(p, attached, corev1.ConditionTrue, time.Now()) },
		},
		"condition-false": {
			component: v1alpha1.Component{Name: "it", PodCondition: &v1alpha1.ConditionComponent{Type: pending, Status: corev1.ConditionFalse}},
			before:    func(p *corev1.Pod) { s.condition(p, pending, corev1.ConditionTrue, time.Now()) },
			why:       "condition " + pending + " is True",
			then:      func(p *corev1.Pod) { s.condition(p, pending, corev1.ConditionFalse, time.Now()) },
		},
		"node-condition": {
			component: nodeCondition(flannel), why: "the node has no condition " + flannel,
			then: func(*corev1.Pod) { s.nodeCondition(flannel, corev1.ConditionTrue, time.Now()) },
		},
		"before-boot": {
			component: nodeCondition(stale), why: "node condition " + stale + " is older than the node's last boot",
			before: func(*corev1.Pod) {
				s.nodeCondition(stale, corev1.ConditionTrue, time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC))
			},
			then: func(*corev1.Pod) { s.nodeCondition(stale, corev1.ConditionTrue, time.Now()) },
		},
		"file": {
			component: byFile("it", "/run/{uid}"), why: "no such file",
			then: func(p *corev1.Pod) { h.write(string(p.UID), "") },
		},
		"earlier-file": {
			component: v1alpha1.Component{Name: "it", File: &v1alpha1.FileComponent{Path: "/run/{namespace}_{name}", Contains: "{ip}/32"}},
			before:    func(p *corev1.Pod) { h.write(p.Namespace+"_"+p.Name, `{"ips": ["1`+address+`/32", "10.9.9.9/32"]}`) },
			why:       "the file does not contain " + address + "/32",
			then:      func(p *corev1.Pod) { h.write(p.Namespace+"_"+p.Name, `{"ips": ["`+address+`/32"]}`) },
		},
		"http": {
			component: byHTTP("it", e.url+"/pods/{namespace}/{name}/{ip}"), why: "returned 503",
			then: func(p *corev1.Pod) { e.ready.Store("/pods/"+p.Namespace+"/"+p.Name+"/"+address, true) },
		},
		"reach": {
			component: v1alpha1.Component{Name: "it", Reach: &v1alpha1.ReachComponent{}}, why: "no route to the network",
			before: func(p *corev1.Pod) { s.sandbox(p, unreachable, longAgo()) },
			then:   func(p *corev1.Pod) { s.sandbox(p, laterAddress, time.Now()) },
		},
	}
}

// With two independent components, the gate names the missing ones with the reason, and opens when
// the last one is ready.
func TestGateOpensWhenEveryComponentIsReady(t *testing.T) {
	t.Parallel()
	s, h, e := newStage(t), newHost(t), newEndpoint(t)
	var rules []*v1alpha1.PodReadinessRule
	scenes := s.scenes(h, e)
	for name, sc := range scenes {
		rules = append(rules, s.rule(name, components(byPodCondition("policy", programmed), sc.component)))
	}
	s.startAgent(h.mounted)
	s.enforce(rules...)
	for _, rule := range rules {
		app := string(rule.Spec.PodSelector.MatchLabels["app"])
		s.play(rule, app, scenes[app])
	}
}

// play makes the component of a scene unready for a pod, and then ready.
func (s *stage) play(rule *v1alpha1.PodReadinessRule, app string, sc scene) {
	s.t.Helper()
	gate := rule.Spec.Gate
	pod := s.pod(app)
	if sc.before != nil {
		sc.before(pod)
	}
	if s.get(pod).Status.PodIP == "" {
		s.sandbox(pod, address, longAgo())
	}
	s.wantGate(pod, gate, waits, fmt.Sprintf("waiting for policy (the pod has no condition %s), it (%s)", programmed, sc.why))
	s.says(pod, corev1.ConditionTrue)
	got := s.wantGate(pod, gate, waits, fmt.Sprintf("waiting for it (%s)", sc.why))
	if key, ok := latchkey.Parse(got.Annotations[v1alpha1.LatchAnnotation]); !ok || key.Open {
		s.t.Errorf("%s: the key is %q while the gate is closed", app, got.Annotations[v1alpha1.LatchAnnotation])
	}
	sc.then(pod)
	got = s.wantGate(pod, gate, allReady, "all 2 components of rule "+rule.Name+" are ready")
	if key, ok := latchkey.Parse(got.Annotations[v1alpha1.LatchAnnotation]); !ok || !key.Opens(got.Status.PodIP, boot.ID()) {
		s.t.Errorf("%s: the key is %q, and the pod has the address %s", app, got.Annotations[v1alpha1.LatchAnnotation], got.Status.PodIP)
	}
}

// Most pods are ready at once: the agent writes each pod once, for any number of components.
func TestAPodThatIsReadyAtOnceIsWrittenOnce(t *testing.T) {
	t.Parallel()
	s, h, e := newStage(t), newHost(t), newEndpoint(t)
	const flannel, count = "net.example.com/FlannelReady", 5
	rule := s.rule("web", components(
		byPodCondition("policy", programmed), byFile("file", "/run/{uid}"), byHTTP("endpoint", e.url+"/{uid}"),
		v1alpha1.Component{Name: "flannel", NodeCondition: &v1alpha1.ConditionComponent{Type: flannel}},
		v1alpha1.Component{Name: "path", Reach: &v1alpha1.ReachComponent{}}))
	s.nodeCondition(flannel, corev1.ConditionTrue, time.Now())
	agent := s.startAgent(h.mounted)
	s.enforce(rule)
	var pods []*corev1.Pod
	for i := range count {
		pod := s.pod("web", named(fmt.Sprintf("web-%d", i)))
		pods = append(pods, pod)
		h.write(string(pod.UID), "")
		e.ready.Store("/"+string(pod.UID), true)
		s.says(pod, corev1.ConditionTrue)
		// The clock of this kubelet is ahead: no deadline passes, however slow this machine is.
		s.sandbox(pod, fmt.Sprintf("127.0.4.%d", i+1), time.Now().Add(long))
	}
	for _, pod := range pods {
		s.wantGate(pod, rule.Spec.Gate, allReady, "all 5 components")
	}
	s.wantDecided(agent, rule.UID, count, 0)
	s.wantRule(rule, "all open", counts(v1alpha1.PodSummary{Gated: count, Open: count}))
	for _, pod := range pods {
		if n := s.writes(pod); n != 1 {
			t.Errorf("%s was written %d times", pod.Name, n)
		}
	}
	for name, want := range map[string]float64{
		"readygate_podgate_patches_total": count, "readygate_podgate_ready_seconds": count,
		"readygate_podgate_last_component_total": count, "readygate_podgate_waiting_pods": 0,
	} {
		if got := sumOf(t, agent.metrics, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// sumOf is the sum of all series of a metric (of the counts, of histograms).
func sumOf(t *testing.T, metrics *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			sum += valueOf(metric)
		}
	}
	return sum
}

func valueOf(metric *dto.Metric) float64 {
	switch {
	case metric.Counter != nil:
		return metric.Counter.GetValue()
	case metric.Gauge != nil:
		return metric.Gauge.GetValue()
	default:
		return float64(metric.Histogram.GetSampleCount())
	}
}

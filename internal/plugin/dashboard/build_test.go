package dashboard_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/plugin/dashboard"
	"github.com/readygate/readygate/internal/plugin/live"
)

const condition = "example.com/NetworkReady"

// rule holds nodes labelled pool=workers until the condition is True.
func rule(name string) *v1alpha1.NodeReadinessRule {
	return &v1alpha1.NodeReadinessRule{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-network"},
		Spec: v1alpha1.NodeReadinessRuleSpec{
			Conditions:      []v1alpha1.ConditionRequirement{{Type: condition, RequiredStatus: corev1.ConditionTrue}},
			EnforcementMode: v1alpha1.EnforcementModeContinuous,
			Taint:           v1alpha1.Taint{Key: "readiness.k8s.io/network", Effect: corev1.TaintEffectNoSchedule},
			NodeSelector:    v1alpha1.NodeSelector{MatchLabels: map[string]v1alpha1.LabelValue{"pool": "workers"}},
		},
	}
}

func held(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "workers"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "readiness.k8s.io/network", Effect: corev1.TaintEffectNoSchedule}}},
	}
}

func released(name string) *corev1.Node {
	node := held(name)
	node.Spec.Taints = nil
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: condition, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return node
}

func fleet(nodes ...*corev1.Node) *live.Fleet {
	f := live.NewFleet(time.Now)
	f.Put(rule("network"))
	for _, node := range nodes {
		f.Put(node)
	}
	return f
}

// received is one message of a stream.
type received struct {
	event string

	At    int64
	Title string
	Rules []struct {
		Name  string
		Count struct{ Held, Released int }
	}
	RulesGone []string
	Nodes     []struct {
		Name, State  string
		Down, Moving bool
		Rules        map[string]string
		Missing      []string

		Stuck, Limited, Causes []string
		Until                  int64
	}
	Gone     []string
	Pods     []receivedPod
	PodsGone []string
	PodRules *int
	Cluster  *struct {
		Lost    int64
		Problem string
	}
}

// receivedPod is a waiting pod of a message.
type receivedPod struct {
	Namespace, Name, Node, Gate, For string
	Since, Due                       int64
}

func (m received) names() []string {
	var names []string
	for _, n := range m.Nodes {
		names = append(names, n.Name+"="+n.State)
	}
	return names
}

// page reads a stream.
type page struct {
	t     *testing.T
	lines *bufio.Scanner
}

func serve(t *testing.T, s *dashboard.Server) string {
	t.Helper()
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

func openPage(t *testing.T, url string) *page {
	t.Helper()
	response := get(t, url+"/api/stream")
	if response.code != http.StatusOK || response.header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("stream: %d %s", response.code, response.header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(response.body)
	lines.Buffer(nil, 64<<20)
	return &page{t, lines}
}

// next waits for a message.
func (p *page) next() received {
	p.t.Helper()
	var m received
	for p.lines.Scan() {
		key, value, _ := strings.Cut(p.lines.Text(), ": ")
		switch key {
		case "event":
			m.event = value
		case "data":
			if err := json.Unmarshal([]byte(value), &m); err != nil {
				p.t.Fatal(err)
			}
		case "":
			return m
		}
	}
	p.t.Fatalf("the stream ended: %v", p.lines.Err())
	return m
}

// answered is the server's response. Its body is closed when the test ends.
type answered struct {
	code   int
	header http.Header
	body   io.Reader
}

func get(t *testing.T, url string, headers ...string) answered {
	t.Helper()
	return request(t, http.MethodGet, url, headers...)
}

// request sends a request with these headers, key and value in turn; Host is one of them.
func request(t *testing.T, method, url string, headers ...string) answered {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return answered{response.StatusCode, response.Header, response.Body}
}

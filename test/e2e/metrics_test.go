package e2e_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/readygate/readygate/test/e2e/lab"
)

// The manager's metrics, as Prometheus reads them: by an account that the chart's values name,
// over HTTPS from the leader's node. Nobody else gets them.
func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	l := lab.Start(t)
	l.JoinThree(t, "--node-labels=example.com/gpu=yes")
	install(t, l, "--set-json", `metrics.readers=[{"kind":"ServiceAccount","name":"prometheus","namespace":"default"}]`)
	managed(t, l)
	l.Kubectl.Run(t, "apply", "-f", testdata("waiting-rule.yaml"))
	l.EventuallyNodes(t, "held", held(waitingTaint), "n1", "n2", "n3")
	for _, account := range []string{"prometheus", "somebody"} {
		l.Kubectl.Run(t, "create", "serviceaccount", account)
	}
	_, node := leader(t, l)
	scrape := func(account string) (int, string) {
		token := strings.TrimSpace(l.Kubectl.Run(t, "create", "token", account))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+l.Node(node).Address+":9447/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // self-signed by default
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close() //nolint:errcheck // only read
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	if code, body := scrape("prometheus"); code != http.StatusOK || !strings.Contains(body, `node_readiness_rule_nodes{rule="waiting",state="held"} 3`) {
		t.Errorf("Prometheus gets %d:\n%.2000s", code, body)
	}
	if code, _ := scrape("somebody"); code != http.StatusForbidden {
		t.Errorf("an account that nobody named gets %d, must get 403", code)
	}
}

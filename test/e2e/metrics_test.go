package e2e_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/e2e/lab"
)

// The manager's metrics, as Prometheus reads them: with a service account that the chart's values name,
// over HTTPS from the leader's node. The manager rejects other accounts.
func TestOnlyAuthorizedAccountsReadMetrics(t *testing.T) {
	l := lab.Start(t)
	l.JoinThree(t, "--node-labels=example.com/gpu=yes")
	install(t, l, "--set-json", `metrics.readers=[{"kind":"ServiceAccount","name":"prometheus","namespace":"default"}]`)
	managed(t, l)
	l.Kubectl.Run(t, "apply", "-f", testdata("waiting-rule.yaml"))
	l.EventuallyNodes(t, "held", held(waitingTaint), "n1", "n2", "n3")
	for _, account := range []string{"prometheus", "other"} {
		l.Kubectl.Run(t, "create", "serviceaccount", account)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // self-signed by default
	scrape := func(ctx context.Context, node, token string) (int, string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+l.Node(node).Address+":9447/metrics", nil)
		if err != nil {
			return 0, "", err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := client.Do(request)
		if err != nil {
			return 0, "", err
		}
		defer answer.Body.Close() //nolint:errcheck // only read
		body, err := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body), err
	}
	token := func(account string) string {
		return strings.TrimSpace(l.Kubectl.Run(t, "create", "token", account))
	}
	prometheus, other := token("prometheus"), token("other")
	_, node := leader(t, l)
	// A manager leads before it has the certificate of its metrics server.
	testenv.Eventually(t, "metrics for Prometheus", func(ctx context.Context) error {
		code, body, err := scrape(ctx, node, prometheus)
		if err == nil && (code != http.StatusOK || !strings.Contains(body, `node_readiness_rule_nodes{rule="waiting",state="held"} 3`)) {
			err = fmt.Errorf("status code %d:\n%.2000s", code, body)
		}
		return err
	})
	if code, _, err := scrape(t.Context(), node, other); err != nil || code != http.StatusForbidden {
		t.Errorf("an account that the values do not name gets %d (%v), must get 403", code, err)
	}
}

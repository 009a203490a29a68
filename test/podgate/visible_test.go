package podgate_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// A manager that cannot list rules for pods logs the error, is not ready, and starts to reconcile
// them when it can. It counts rejected events on pods, as on nodes.
func TestFailedLookupsAndDroppedEventsAreReported(t *testing.T) {
	t.Parallel()
	c := bareCluster(t)
	definition := removeDefinition(t, c)
	proxy := c.ManagerProxy(t)
	p := startManager(t, proxy)
	testenv.Eventually(t, "a manager that is ready without rules for pods", func(ctx context.Context) error {
		code, body, err := testenv.Get(ctx, "http://"+p.Health+"/readyz")
		if log := p.Log(); err != nil || code != http.StatusOK || !strings.Contains(log, "until the CRD "+v1alpha1.CRDName+" is installed") {
			return fmt.Errorf("%d %s (%v):\n%s", code, body, err, log)
		}
		return nil
	})
	proxy.Set(testenv.Fault{Code: http.StatusServiceUnavailable, Of: func(a testenv.Arrival) bool { return strings.HasPrefix(a.Path, "/apis/"+v1alpha1.GroupVersion.Group) }})
	const reason = "looking up PodReadinessRule failed"
	testenv.Eventually(t, "a manager that is not ready", func(ctx context.Context) error {
		code, body, err := testenv.Get(ctx, "http://"+p.Health+"/readyz/podrules")
		if err != nil || code == http.StatusOK || !strings.Contains(body, reason) {
			return fmt.Errorf("%d %s (%v)", code, body, err)
		}
		return nil
	})
	if log := p.Log(); !strings.Contains(log, "Looking up PodReadinessRule failed") {
		t.Errorf("the log does not contain the error:\n%s", log)
	}

	proxy.Set(testenv.Fault{Code: http.StatusForbidden, Of: func(a testenv.Arrival) bool { return a.What() == "create events" }})
	c.Create(t, definition)
	if err := served(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s := stageOn(t, c)
	rule := s.rule("web", deadline(10, v1alpha1.DeadlineReport))
	s.enforce(rule)
	if code, body, err := testenv.Get(t.Context(), "http://"+p.Health+"/readyz/podrules"); err != nil || code != http.StatusOK {
		t.Errorf("not ready with rules for pods: %d %s (%v)", code, body, err)
	}
	s.died()
	s.sandbox(s.pod("web"), "127.0.14.1", longAgo())
	testenv.Eventually(t, "a dropped event that is counted", func(ctx context.Context) error {
		_, body, err := testenv.Get(ctx, "http://"+p.Metrics+"/metrics")
		if err != nil || proxy.Counts()["create events"] == 0 || !strings.Contains(body, "node_readiness_events_dropped_total 1") {
			return fmt.Errorf("%d events were sent (%v)", proxy.Counts()["create events"], err)
		}
		return nil
	})
}

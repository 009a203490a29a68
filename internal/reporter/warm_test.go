package reporter

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/reporter/nodestatus"
)

// While a condition is not True the writer keeps the connection open with a PATCH that changes nothing and
// returns metadata, which also shows that a node was recreated.
func TestConnectionIsKeptOpenWhileAConditionIsNotTrue(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+string(body)+" "+r.Header.Get("Accept"))
		_, _ = io.WriteString(w, `{"metadata": {"uid": "two"}}`)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: {server: %q}}]\nusers: [{name: u, user: {token: t}}]\n", server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	connection, err := nodestatus.FromKubeconfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	b := newTestBoard()
	b.learn(nodeWith("one", "", boardNoon, booted), at(0))
	b.observe(boardTask, boardBad, 0, at(1))
	w := &writer{client: nodestatus.NewClient(connection, "n"), board: b, metrics: NewMetrics(), asked: time.Now().Add(-2 * keepAliveInterval)}
	if !w.idle(t.Context(), time.Hour) || len(asked) != 1 || asked[0] != "PATCH {} application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io" {
		t.Fatalf("asked for %q", asked)
	}
	if b.uid() != "two" {
		t.Errorf("the new node is taken for %s", b.uid())
	}
	// Once all conditions are True, no request is sent.
	b.observe(boardTask, boardGood, 0, at(2))
	w.asked = time.Now().Add(-2 * keepAliveInterval)
	if w.idle(t.Context(), time.Millisecond); len(asked) != 1 {
		t.Errorf("asked for %q", asked)
	}
}

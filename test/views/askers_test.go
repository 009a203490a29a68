package views_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/plugin"
	"github.com/readygate/readygate/internal/plugin/dashboard"
	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/plugin/view"
	"github.com/readygate/readygate/internal/testenv"
)

// askers are the views of a cluster: the fleet, the page and the command.
type askers struct {
	fleet      *live.Fleet
	page       *httptest.Server
	kubeconfig string
}

func newAskers(t *testing.T, c *testenv.Cluster) *askers {
	t.Helper()
	all := source(t, c, "admin", administrators)
	fleet, err := all.Follow(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	a := &askers{fleet: fleet, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	if err := controlplane.WriteKubeconfig(a.kubeconfig, c.Config); err != nil {
		t.Fatal(err)
	}
	a.page = httptest.NewServer(dashboard.New(dashboard.Options{Fleet: fleet, Explanation: all.Explanation}).Handler())
	t.Cleanup(func() {
		a.page.CloseClientConnections()
		a.page.Close()
	})
	return a
}

// why returns the output of kubectl readiness why.
func (a *askers) why(t *testing.T, node string) view.Explanation {
	t.Helper()
	var out, errs bytes.Buffer
	if code := plugin.Run(t.Context(), genericiooptions.IOStreams{In: &out, Out: &out, ErrOut: &errs}, []string{"why", node, "-o", "json", "--kubeconfig", a.kubeconfig}); code != 0 {
		t.Fatalf("why %s: exit code %d: %s", node, code, errs.String())
	}
	var explanation view.Explanation
	if err := json.Unmarshal(out.Bytes(), &explanation); err != nil {
		t.Fatal(err)
	}
	return explanation
}

// explanation is what the page shows when the node is clicked.
func (a *askers) explanation(t *testing.T, node string) view.Explanation {
	t.Helper()
	answer := a.get(t, "/api/nodes/"+node+"/explanation")
	defer answer.Body.Close() //nolint:errcheck // only read
	var explanation view.Explanation
	if err := json.NewDecoder(answer.Body).Decode(&explanation); err != nil {
		t.Fatal(err)
	}
	return explanation
}

// tiles are what the page draws.
func (a *askers) tiles(t *testing.T) map[string]noderule.State {
	t.Helper()
	answer := a.get(t, "/api/stream")
	defer answer.Body.Close() //nolint:errcheck // only read
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found {
			continue
		}
		var first struct {
			Nodes []struct {
				Name  string
				State noderule.State
			}
		}
		if err := json.Unmarshal([]byte(data), &first); err != nil {
			t.Fatal(err)
		}
		tiles := map[string]noderule.State{}
		for _, tile := range first.Nodes {
			tiles[tile.Name] = tile.State
		}
		return tiles
	}
	t.Fatalf("the stream ended: %v", lines.Err())
	return nil
}

func (a *askers) get(t *testing.T, path string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.page.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := a.page.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", path, answer.Status)
	}
	return answer
}

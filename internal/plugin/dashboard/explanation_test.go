package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/readygate/readygate/internal/plugin/dashboard"
	"github.com/readygate/readygate/internal/plugin/view"
)

func TestNodeExplanationIsServedUnchanged(t *testing.T) {
	for _, name := range []string{"worker-1", "a/b", "..", "ä ö?x=1#y", "<img src=x>", "%2F"} {
		asked := ""
		s := dashboard.New(dashboard.Options{Fleet: fleet(), Explanation: func(_ context.Context, node string) (view.Explanation, error) {
			asked = node
			return view.Explanation{Node: view.Node{Name: node}, Headline: "all about " + node, Next: []string{"look"}}, nil
		}})
		response := get(t, serve(t, s)+"/api/nodes/"+url.PathEscape(name)+"/explanation")
		var explanation view.Explanation
		if err := json.NewDecoder(response.body).Decode(&explanation); name != ".." && (err != nil || asked != name || explanation.Headline != "all about "+name || explanation.Next[0] != "look") {
			t.Errorf("%q: %d, %v, asked for %q, %+v", name, response.code, err, asked, explanation)
		}
	}
}

func TestWithoutASourceTheFleetExplainsANode(t *testing.T) {
	base := serve(t, dashboard.New(dashboard.Options{Fleet: fleet(held("a"))}))
	var explanation view.Explanation
	if err := json.NewDecoder(get(t, base+"/api/nodes/a/explanation").body).Decode(&explanation); err != nil || explanation.Headline == "" || len(explanation.Chapters) != 1 {
		t.Errorf("%+v, %v", explanation, err)
	}
}

func TestFailedExplanationReturnsTheReason(t *testing.T) {
	failing := func(context.Context, string) (view.Explanation, error) {
		return view.Explanation{}, errors.New("the cluster is gone")
	}
	cases := map[string]struct {
		options dashboard.Options
		code    int
		says    string
	}{
		"no such node":      {dashboard.Options{Fleet: fleet()}, http.StatusNotFound, `there is no node "a": nodes "a" not found`},
		"no such a cluster": {dashboard.Options{Fleet: fleet(), Explanation: failing}, http.StatusBadGateway, "the cluster is gone"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			response := get(t, serve(t, dashboard.New(c.options))+"/api/nodes/a/explanation")
			var answer struct{ Error string }
			if err := json.NewDecoder(response.body).Decode(&answer); err != nil || response.code != c.code || answer.Error != c.says {
				t.Errorf("%d, %q, %v", response.code, answer.Error, err)
			}
		})
	}
}

package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/plugin/view"
)

// message is what a page is told. The first one of a stream is the whole fleet, later ones
// have only what changed.
type message struct {
	// At is the time of the server, in milliseconds: the page counts ages by it.
	At    int64  `json:"at"`
	Title string `json:"title,omitempty"`

	Rules     []view.Rule `json:"rules,omitempty"`
	RulesGone []string    `json:"rulesGone,omitempty"`
	Nodes     []tile      `json:"nodes,omitempty"`
	Gone      []string    `json:"gone,omitempty"`
	// Waiting are pods that are bound to no node; nil if it is not known, or has not changed.
	Waiting *int `json:"waiting,omitempty"`
	// Pods are pods that wait for a gate, and PodsGone those that no longer do, as namespace/name.
	Pods     []podRow `json:"pods,omitempty"`
	PodsGone []string `json:"podsGone,omitempty"`
	// PodRules is how many rules of pods there are; nil if that has not changed.
	PodRules *int     `json:"podRules,omitempty"`
	Unseen   []string `json:"unseen,omitempty"`
	// Cluster says whether the cluster is there; nil if that has not changed.
	Cluster *cluster `json:"cluster,omitempty"`
}

// cluster is empty while the cluster is there.
type cluster struct {
	// Lost is since when it is not, in milliseconds.
	Lost    int64  `json:"lost,omitempty"`
	Problem string `json:"problem,omitempty"`
}

func clusterOf(connection live.Connection) *cluster {
	if connection.Lost.IsZero() {
		return &cluster{}
	}
	return &cluster{Lost: connection.Lost.UnixMilli(), Problem: connection.Problem}
}

func (m message) empty() bool {
	return len(m.Rules)+len(m.RulesGone)+len(m.Nodes)+len(m.Gone)+len(m.Pods)+len(m.PodsGone) == 0 && m.Waiting == nil && m.PodRules == nil && m.Cluster == nil
}

// stream tells a page of the fleet, then of changes, as server-sent events. A page that does
// not read is given up; until then nobody waits for it, and what it has to catch up with is
// bounded by the size of the fleet.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		http.Error(w, "too many pages are open: close one", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	follower, snapshot := s.fleet.Follow()
	defer follower.Stop()
	told := &teller{server: s, w: w, control: http.NewResponseController(w), rules: map[string]view.Rule{}}
	if told.send("snapshot", told.snapshot(snapshot)) != nil {
		return
	}
	alive := time.NewTicker(beat)
	defer alive.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-alive.C:
			if told.send("beat", message{}) != nil {
				return
			}
		case <-follower.Changed():
			if m := told.changes(follower.Take()); !m.empty() && told.send("changes", m) != nil {
				return
			}
			select {
			case <-r.Context().Done():
				return
			case <-s.after(pace):
			}
		}
	}
}

// teller tells one page, and remembers which rules it knows.
type teller struct {
	server  *Server
	w       http.ResponseWriter
	control *http.ResponseController
	rules   map[string]view.Rule
}

func (t *teller) snapshot(snapshot live.Snapshot) message {
	m := message{
		Title: t.server.title, Nodes: tilesOf(snapshot.Nodes), Unseen: snapshot.Unseen, Cluster: clusterOf(snapshot.Connection),
		Pods: podRowsOf(snapshot.Gated), PodRules: &snapshot.PodRules,
	}
	m.Rules, _ = t.changed(snapshot.Rules)
	if snapshot.Pods != nil {
		m.Waiting = &snapshot.Waiting
	}
	return m
}

func (t *teller) changes(delta live.Delta) message {
	m := message{Nodes: tilesOf(delta.Nodes), Gone: delta.Gone, Pods: podRowsOf(delta.Gated), PodsGone: delta.Ungated, PodRules: delta.PodRules}
	if delta.Rules != nil {
		m.Rules, m.RulesGone = t.changed(delta.Rules)
	}
	if delta.Connection != nil {
		m.Cluster = clusterOf(*delta.Connection)
	}
	if waiting, changed := delta.Pods[""]; changed {
		m.Waiting = &waiting
	}
	return m
}

// changed are the rules of which the page does not know the line, and those that are gone.
func (t *teller) changed(rules []view.Rule) (changed []view.Rule, gone []string) {
	there := make(map[string]bool, len(rules))
	for _, rule := range rules {
		there[rule.Name] = true
		if before, known := t.rules[rule.Name]; !known || !reflect.DeepEqual(before, rule) {
			changed = append(changed, rule)
			t.rules[rule.Name] = rule
		}
	}
	for name := range t.rules {
		if !there[name] {
			gone = append(gone, name)
			delete(t.rules, name)
		}
	}
	slices.Sort(gone)
	return changed, gone
}

func (t *teller) send(event string, m message) error {
	m.At = t.server.now().UnixMilli()
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_ = t.control.SetWriteDeadline(time.Now().Add(t.server.patience)) // a writer without deadlines has none to miss
	if _, err := fmt.Fprintf(t.w, "event: %s\ndata: %s\n\n", event, data); err != nil {
		return err
	}
	return t.control.Flush()
}

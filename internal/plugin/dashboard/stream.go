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

// message is a message to the page. The first message of a stream is the whole fleet; later messages have only the
// changes.
type message struct {
	// At is the server's time in milliseconds. The page computes ages from it.
	At    int64  `json:"at"`
	Title string `json:"title,omitempty"`

	Rules     []view.Rule `json:"rules,omitempty"`
	RulesGone []string    `json:"rulesGone,omitempty"`
	Nodes     []tile      `json:"nodes,omitempty"`
	Gone      []string    `json:"gone,omitempty"`
	// Waiting is the number of pods that are bound to no node; nil if unknown or unchanged.
	Waiting *int `json:"waiting,omitempty"`
	// Pods are the pods that wait for a gate, and PodsGone the pods that no longer wait, as namespace/name.
	Pods     []podRow `json:"pods,omitempty"`
	PodsGone []string `json:"podsGone,omitempty"`
	// PodRules is the number of PodReadinessRules; nil if unchanged.
	PodRules *int     `json:"podRules,omitempty"`
	Unseen   []string `json:"unseen,omitempty"`
	// Cluster is the state of the connection to the cluster; nil if unchanged.
	Cluster *cluster `json:"cluster,omitempty"`
}

// cluster is the state of the connection. It is empty while connected.
type cluster struct {
	// Lost is when the connection was lost, in milliseconds.
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

// stream sends the fleet and then its changes to a page, as server-sent events. It disconnects a page that does not read
// for readTimeout. Until then the fleet does not wait for the page, and the pending changes are bounded by the size of
// the fleet.
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
	follower, snapshot := s.options.Fleet.Follow()
	defer follower.Stop()
	page := &pageStream{server: s, w: w, control: http.NewResponseController(w), rules: map[string]view.Rule{}}
	if page.send("snapshot", page.snapshot(snapshot)) != nil {
		return
	}
	alive := time.NewTicker(beat)
	defer alive.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-alive.C:
			if page.send("beat", message{}) != nil {
				return
			}
		case <-follower.Changed():
			if m := page.changes(follower.Take()); !m.empty() && page.send("changes", m) != nil {
				return
			}
			select {
			case <-r.Context().Done():
				return
			case <-s.after(streamInterval):
			}
		}
	}
}

// pageStream writes to one page, and keeps the sent rules.
type pageStream struct {
	server  *Server
	w       http.ResponseWriter
	control *http.ResponseController
	rules   map[string]view.Rule
}

func (p *pageStream) snapshot(snapshot live.Snapshot) message {
	m := message{
		Title: p.server.options.Title, Nodes: each(snapshot.Nodes, tileOf), Unseen: snapshot.Unseen, Cluster: clusterOf(snapshot.Connection),
		Pods: each(snapshot.Gated, podRowOf), PodRules: &snapshot.PodRules, Waiting: snapshot.Waiting,
	}
	m.Rules, _ = p.changed(snapshot.Rules)
	return m
}

func (p *pageStream) changes(delta live.Delta) message {
	m := message{
		Nodes: each(delta.Nodes, tileOf), Gone: delta.Gone, Waiting: delta.Waiting,
		Pods: each(delta.Gated, podRowOf), PodsGone: delta.Ungated, PodRules: delta.PodRules,
	}
	if delta.Rules != nil {
		m.Rules, m.RulesGone = p.changed(delta.Rules)
	}
	if delta.Connection != nil {
		m.Cluster = clusterOf(*delta.Connection)
	}
	return m
}

// changed returns the rules whose rows differ from the sent ones, and the deleted rules.
func (p *pageStream) changed(rules []view.Rule) (changed []view.Rule, gone []string) {
	there := make(map[string]bool, len(rules))
	for _, rule := range rules {
		there[rule.Name] = true
		if before, known := p.rules[rule.Name]; !known || !reflect.DeepEqual(before, rule) {
			changed = append(changed, rule)
			p.rules[rule.Name] = rule
		}
	}
	for name := range p.rules {
		if !there[name] {
			gone = append(gone, name)
			delete(p.rules, name)
		}
	}
	slices.Sort(gone)
	return changed, gone
}

func (p *pageStream) send(event string, m message) error {
	m.At = p.server.options.Now().UnixMilli()
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_ = p.control.SetWriteDeadline(time.Now().Add(p.server.readTimeout)) // not every writer supports deadlines
	if _, err := fmt.Fprintf(p.w, "event: %s\ndata: %s\n\n", event, data); err != nil {
		return err
	}
	return p.control.Flush()
}

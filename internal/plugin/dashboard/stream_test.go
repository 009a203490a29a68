package dashboard_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/plugin/dashboard"
)

func TestStreamSendsTheFleetThenOnlyChanges(t *testing.T) {
	f := fleet(held("a"), held("b"), released("c"))
	now := time.UnixMilli(1234567)
	p := openPage(t, serve(t, dashboard.New(dashboard.Options{Fleet: f, Title: "here", Now: func() time.Time { return now }})))

	first := p.next()
	if first.event != "snapshot" || first.Title != "here" || first.At != 1234567 {
		t.Errorf("first: %+v", first)
	}
	if want := []string{"a=Held", "b=Held", "c=Released"}; !slices.Equal(first.names(), want) {
		t.Errorf("nodes %v, want %v", first.names(), want)
	}
	a := first.Nodes[0]
	if want := condition + " is not reported, must be True"; !slices.Equal(a.Missing, []string{want}) || a.Rules["network"] != "Held" || !a.Down {
		t.Errorf("a held node without conditions: %+v", a)
	}

	f.Put(released("b"))
	changed := p.next()
	if changed.event != "changes" || !slices.Equal(changed.names(), []string{"b=Released"}) || changed.Rules[0].Count.Held != 1 {
		t.Errorf("after a change: %+v", changed)
	}
	f.Drop(held("a"))
	if gone := p.next(); len(gone.Nodes) != 0 || !slices.Equal(gone.Gone, []string{"a"}) {
		t.Errorf("after a node is gone: %+v", gone)
	}
	f.Drop(rule("network"))
	if gone := p.next(); !slices.Equal(gone.RulesGone, []string{"network"}) || !slices.Equal(gone.names(), []string{"b=NotSelected", "c=NotSelected"}) {
		t.Errorf("after a rule is gone: %+v", gone)
	}
}

func TestStreamReportsThatTheClusterIsLost(t *testing.T) {
	f := fleet(held("a"))
	url := serve(t, dashboard.New(dashboard.Options{Fleet: f}))
	p := openPage(t, url)
	if first := p.next(); first.Cluster == nil || first.Cluster.Lost != 0 {
		t.Errorf("while it is there: %+v", first.Cluster)
	}
	f.Disconnected("nodes", "refused", time.UnixMilli(1234567))
	for name, m := range map[string]received{"this page": p.next(), "a new page": openPage(t, url).next()} {
		if m.Cluster == nil || m.Cluster.Lost != 1234567 || m.Cluster.Problem != "refused" {
			t.Errorf("%s received %+v", name, m.Cluster)
		}
	}
	f.Connected("nodes")
	if m := p.next(); m.Cluster == nil || m.Cluster.Lost != 0 {
		t.Errorf("when it is back: %+v", m.Cluster)
	}
	f.Put(released("a"))
	if m := p.next(); m.Cluster != nil {
		t.Errorf("received an unchanged connection: %+v", m.Cluster)
	}
}

func TestUnchangedRuleIsNotSentAgain(t *testing.T) {
	f := fleet()
	f.Put(held("a"))
	other := rule("other")
	other.UID, other.Spec.NodeSelector.MatchLabels["pool"] = "uid-other", "others"
	f.Put(other)
	p := openPage(t, serve(t, dashboard.New(dashboard.Options{Fleet: f})))
	if first := p.next(); len(first.Rules) != 2 {
		t.Fatalf("rules: %+v", first.Rules)
	}
	f.Put(released("a"))
	if changed := p.next(); len(changed.Rules) != 1 || changed.Rules[0].Name != "network" {
		t.Errorf("rules after a change of one: %+v", changed.Rules)
	}
}

func TestChangesDuringAPauseAreOneMessage(t *testing.T) {
	pausing, resume := make(chan struct{}), make(chan time.Time)
	f := fleet(held("a"))
	s := dashboard.New(dashboard.Options{Fleet: f})
	s.SetAfter(func(time.Duration) <-chan time.Time {
		pausing <- struct{}{}
		return resume
	})
	p := openPage(t, serve(t, s))
	p.next()
	f.Put(released("a"))
	p.next()
	<-pausing
	for i := range 100 {
		f.Put(held("a"), held(fmt.Sprintf("n%02d", i)))
		f.Put(released("a"))
	}
	resume <- time.Time{}
	if m := p.next(); len(m.Nodes) != 101 || m.names()[0] != "a=Released" {
		t.Errorf("after 300 changes of 101 nodes: %v", m.names())
	}
	<-pausing // it pauses again: no changes were left
}

// stuck is a page that does not read.
type stuck struct {
	*httptest.ResponseRecorder
	writing  chan struct{}
	deadline time.Time
}

func (w *stuck) SetWriteDeadline(at time.Time) error { w.deadline = at; return nil }

func (w *stuck) Write([]byte) (int, error) {
	close(w.writing)
	<-time.After(time.Until(w.deadline))
	return 0, os.ErrDeadlineExceeded
}

func TestSlowPageDelaysNoOtherPageAndIsDisconnected(t *testing.T) {
	f := fleet(held("a"))
	s := dashboard.New(dashboard.Options{Fleet: f})
	url := serve(t, s)
	s.SetReadTimeout(time.Second)
	slow := &stuck{ResponseRecorder: httptest.NewRecorder(), writing: make(chan struct{})}
	given := make(chan struct{})
	go func() {
		defer close(given)
		s.Handler().ServeHTTP(slow, httptest.NewRequest(http.MethodGet, "http://localhost/api/stream", http.NoBody))
	}()
	<-slow.writing

	p := openPage(t, url)
	p.next()
	f.Put(released("a"))
	if m := p.next(); !slices.Equal(m.names(), []string{"a=Released"}) {
		t.Errorf("another page received %v", m.names())
	}
	<-given
}

func TestTheNumberOfPagesIsBounded(t *testing.T) {
	s := dashboard.New(dashboard.Options{Fleet: fleet()})
	url := serve(t, s)
	for range dashboard.MaxStreams {
		openPage(t, url).next()
	}
	if response := get(t, url+"/api/stream"); response.code != http.StatusServiceUnavailable {
		t.Errorf("one page too many: %d", response.code)
	}
}

func TestHeadRequestOfAStreamEnds(t *testing.T) {
	s := dashboard.New(dashboard.Options{Fleet: fleet()})
	if response := request(t, http.MethodHead, serve(t, s)+"/api/stream"); response.code != http.StatusOK || s.Streams() != 0 {
		t.Errorf("%d, %d streams", response.code, s.Streams())
	}
}

func TestHostileTextsStayWithinTheirMessage(t *testing.T) {
	hostile := "x\n\nevent: snapshot\ndata: {}\r\n\u2028<script>alert(1)</script>"
	p := openPage(t, serve(t, dashboard.New(dashboard.Options{Fleet: fleet(held(hostile)), Title: hostile})))
	first := p.next()
	if first.Title != hostile || !reflect.DeepEqual(first.names(), []string{hostile + "=Held"}) {
		t.Errorf("told: %+v", first)
	}
	recorded := &bytes.Buffer{}
	_, _ = recorded.ReadFrom(get(t, serve(t, dashboard.New(dashboard.Options{Fleet: fleet(held(hostile))}))+"/api/times").body)
	if bytes.Contains(recorded.Bytes(), []byte("<")) {
		t.Errorf("markup in an answer: %s", recorded)
	}
}

package probe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/podgate/probe"
)

// town are the agents of a cluster, and one of them that asks the others, in virtual time.
type town struct {
	*probe.PeerClient

	mu    sync.Mutex
	nodes int
	// down are agents that do not answer.
	down map[string]bool
	// lists counts how often they were listed, which takes so long, and may fail.
	lists  int
	takes  time.Duration
	broken error
	// asked counts who was asked.
	asked map[string]int
	// answer is what agents say, after a while.
	answer string
	after  time.Duration
}

func inTown(t *testing.T, nodes int, f func(*testing.T, *town)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &town{nodes: nodes, down: map[string]bool{}, asked: map[string]int{}, answer: `{"reached":true}`}
		w.PeerClient = &probe.PeerClient{Addresses: w.list, Token: func() (string, error) { return "good", nil }, Client: &http.Client{Transport: roundTrip(w.trip)}}
		f(t, w)
		synctest.Wait()
	})
}

func (w *town) list(context.Context) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lists++
	if w.takes > 0 {
		w.mu.Unlock()
		time.Sleep(w.takes)
		w.mu.Lock()
	}
	if w.broken != nil {
		return nil, w.broken
	}
	var all []string
	for i := range w.nodes {
		all = append(all, fmt.Sprintf("http://10.1.0.%d:9479", i+1))
	}
	return all, nil
}

func (w *town) trip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	peer := r.URL.Scheme + "://" + r.URL.Host
	w.asked[peer]++
	down, answer, after := w.down[peer], w.answer, w.after
	w.mu.Unlock()
	if down {
		return nil, errors.New("connection refused")
	}
	select {
	case <-time.After(after):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

// ask asks every second for a while. It returns the last answer.
func (w *town) ask(ctx context.Context, during time.Duration) podrule.Answer {
	var answer podrule.Answer
	for begun := time.Now(); time.Since(begun) < during; time.Sleep(time.Second) {
		asked, cancel := context.WithTimeout(ctx, 2*time.Second)
		answer = w.Reach(asked, "10.244.1.7:9")
		cancel()
	}
	return answer
}

func (w *town) wantLists(t *testing.T, least, most int, what string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lists < least || w.lists > most {
		t.Errorf("%s: agents were listed %d times, want %d to %d", what, w.lists, least, most)
	}
}

// all switches all agents off, or on.
func (w *town) all(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.nodes {
		w.down[fmt.Sprintf("http://10.1.0.%d:9479", i+1)] = down
	}
}

func TestAFewPeersAreAskedForLong(t *testing.T) {
	inTown(t, 200, func(t *testing.T, w *town) {
		expect(t, w.ask(t.Context(), 9*time.Minute), yes)
		w.wantLists(t, 1, 1, "for nine minutes")
		if len(w.asked) != 10 {
			t.Errorf("%d of them were asked", len(w.asked))
		}
		expect(t, w.ask(t.Context(), 5*time.Minute), yes)
		w.wantLists(t, 2, 2, "for a quarter of an hour")
		if len(w.asked) < 11 {
			t.Error("the same ones were picked again")
		}
	})
}

// Nobody who is picked at random is picked by all.
func TestAgentsPickDifferentPeers(t *testing.T) {
	inTown(t, 200, func(t *testing.T, w *town) {
		for range 20 {
			w.PeerClient = &probe.PeerClient{Addresses: w.list, Token: w.Token, Client: w.Client}
			w.ask(t.Context(), 20*time.Second)
		}
		if len(w.asked) < 60 {
			t.Errorf("20 agents asked %d others", len(w.asked))
		}
	})
}

func TestAPeerThatFailsIsReplaced(t *testing.T) {
	inTown(t, 30, func(t *testing.T, w *town) {
		w.ask(t.Context(), 20*time.Second)
		var gone string
		for gone = range w.asked {
			break
		}
		w.down[gone] = true
		expect(t, w.ask(t.Context(), 30*time.Second), yes)
		w.wantLists(t, 1, 1, "within a minute")
		expect(t, w.ask(t.Context(), time.Minute), yes)
		w.wantLists(t, 2, 2, "after a minute")
		before := w.asked[gone]
		expect(t, w.ask(t.Context(), 5*time.Minute), yes)
		w.wantLists(t, 2, 2, "when it is replaced")
		if w.asked[gone] != before {
			t.Error("it is still asked")
		}
	})
}

// Where the network between nodes is down, all agents fail, and do not list more and more.
func TestWhereAllPeersFailListsBecomeRare(t *testing.T) {
	inTown(t, 30, func(t *testing.T, w *town) {
		w.all(true)
		expect(t, w.ask(t.Context(), time.Hour), no("no peer answered"))
		w.wantLists(t, 6, 11, "for an hour")
		w.all(false)
		expect(t, w.ask(t.Context(), 5*time.Second), yes)
	})
}

// A pod that nobody reaches takes the time of two peers: the second one is not to blame.
func TestAPeerThatHadNoTimeHasNotFailed(t *testing.T) {
	inTown(t, 30, func(t *testing.T, w *town) {
		w.answer, w.after = `{"reached":false}`, 1200*time.Millisecond
		expect(t, w.ask(t.Context(), 5*time.Minute), no("another node does not reach it"))
		w.wantLists(t, 1, 1, "for five minutes")
	})
}

// A small cluster may be one that is just starting.
func TestFewPeersAreListedAgainSoon(t *testing.T) {
	inTown(t, 2, func(t *testing.T, w *town) {
		w.down["http://10.1.0.1:9479"] = true // it is kept all the same: there are no others
		expect(t, w.ask(t.Context(), 5*time.Minute), yes)
		w.wantLists(t, 4, 6, "for five minutes")
		if len(w.asked) != 2 {
			t.Errorf("asked were %v", w.asked)
		}
	})
}

func TestAPeerThatComesIsFound(t *testing.T) {
	inTown(t, 0, func(t *testing.T, w *town) {
		expect(t, w.ask(t.Context(), 15*time.Second), no("no peer: no other node has an agent"))
		w.nodes = 1
		expect(t, w.ask(t.Context(), 15*time.Second), yes)
		w.wantLists(t, 2, 3, "for half a minute")
	})
}

// Peers are asked on when they cannot be listed, and who has none says why.
func TestPeersThatCannotBeListed(t *testing.T) {
	inTown(t, 30, func(t *testing.T, w *town) {
		w.broken = errors.New("forbidden")
		expect(t, w.ask(t.Context(), 5*time.Second), no("no peer: the agents of other nodes have not been listed"))
		w.wantLists(t, 1, 1, "for five seconds")
		w.broken = nil
		expect(t, w.ask(t.Context(), 15*time.Second), yes)
		w.broken = errors.New("the API server is gone")
		expect(t, w.ask(t.Context(), 30*time.Minute), yes)
		w.wantLists(t, 10, 25, "for half an hour")
	})
}

// Only who knows nobody waits for a list, and not for long.
func TestASlowListKeepsNobodyWaiting(t *testing.T) {
	inTown(t, 30, func(t *testing.T, w *town) {
		w.takes = 5 * time.Second
		begun := time.Now()
		expect(t, w.Reach(t.Context(), "10.244.1.7:9"), no("no peer: the agents of other nodes have not been listed"))
		if took := time.Since(begun); took != time.Second {
			t.Errorf("the first question took %v", took)
		}
		time.Sleep(5 * time.Second)
		expect(t, w.Reach(t.Context(), "10.244.1.7:9"), yes)
		time.Sleep(15 * time.Minute)
		begun = time.Now()
		expect(t, w.Reach(t.Context(), "10.244.1.7:9"), yes)
		if took := time.Since(begun); took != 0 {
			t.Errorf("a question beside a list took %v", took)
		}
		time.Sleep(10 * time.Second)
		w.wantLists(t, 2, 2, "after a quarter of an hour")
	})
}

// Many questions at once cost one list.
func TestManyQuestionsCostOneList(t *testing.T) {
	inTown(t, 30, func(t *testing.T, w *town) {
		w.takes = 100 * time.Millisecond
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() { expect(t, w.Reach(t.Context(), "10.244.1.7:9"), yes) })
		}
		all.Wait()
		w.wantLists(t, 1, 1, "64 at once")
	})
}

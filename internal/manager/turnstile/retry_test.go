package turnstile

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// throttled is a server that refuses everything for a while, each time with Retry-After: 1.
type throttled struct {
	until time.Time

	mu      sync.Mutex
	refused int
	served  map[string]int
}

func (s *throttled) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.until) {
		s.refused++
		return answer(http.StatusTooManyRequests, "1"), nil
	}
	s.served[req.URL.Path]++
	return answer(http.StatusOK, ""), nil
}

// client-go retries a request that was refused, ten times. Its retries go through the
// turnstile like new requests, so a server that refuses for long sees fewer and fewer: in each
// second as many as there are places, half as many in the next, then one.
func TestRetriesOfClientGoDoNotMultiply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, nodes, seconds, most = 16, 160, 10, 20
		s := &throttled{until: time.Now().Add(seconds * time.Second), served: map[string]int{}}
		config := &rest.Config{Transport: s, QPS: -1}
		config.Wrap(New(most).Wrap)
		clients, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		work := make(chan string, nodes)
		for i := range nodes {
			work <- fmt.Sprintf("node-%d", i)
		}
		close(work)
		var all sync.WaitGroup
		for range workers {
			all.Go(func() {
				for name := range work {
					if err := patch(t.Context(), clients, name); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
		all.Wait()
		// 16, then 10, 5, 2, and one a second.
		bound := 0
		for second, places := 0, most; second < seconds; second, places = second+1, max(1, places/2) {
			bound += min(workers, places)
		}
		if s.refused > bound {
			t.Errorf("%d requests in %d s, want %d at most", s.refused, seconds, bound)
		}
		t.Logf("%d requests in %d s, of %d at most", s.refused, seconds, bound)
		for path, count := range s.served {
			if count != 1 {
				t.Errorf("%s was served %d times", path, count)
			}
		}
		if len(s.served) != nodes {
			t.Errorf("%d of %d nodes were served", len(s.served), nodes)
		}
	})
}

func patch(ctx context.Context, clients kubernetes.Interface, name string) error {
	_, err := clients.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	return err
}

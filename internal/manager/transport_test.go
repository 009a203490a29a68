package manager

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/readygate/readygate/internal/manager/leadership"
)

type server struct{}

func (server) RoundTrip(*http.Request) (*http.Response, error) { return nil, http.ErrServerClosed }

func TestTheFenceIsTheInnermostTransport(t *testing.T) {
	config := &rest.Config{Host: "https://api", Transport: server{}}
	wrapTransport(config, leadership.NewFence(clock.RealClock{}, leadership.RenewDeadline, time.Minute))
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for next := transport; next != nil; {
		got = append(got, fmt.Sprintf("%T", next))
		wrapper, ok := next.(utilnet.RoundTripperWrapper)
		if !ok {
			break
		}
		next = wrapper.WrappedRoundTripper()
	}
	if want := []string{"nodecache.transport", "*leadership.transport", "manager.server"}; !slices.Equal(got, want) {
		t.Errorf("a request goes through %v, want %v", got, want)
	}
}

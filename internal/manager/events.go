package manager

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/readygate/readygate/internal/manager/events"
)

// Maximum rate of events. They are written one at a time, and not while nodes are written, so a slow API server receives
// fewer.
const (
	eventQPS   = 200
	eventBurst = 200
)

// newEvents returns the writer of events. The manager runs it, and it defers events while busy returns true.
func newEvents(mgr manager.Manager, registerer prometheus.Registerer, busy func() bool) (*events.Writer, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.QPS, config.Burst = eventQPS, eventBurst
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	writer := events.New(client.EventsV1(), mgr.GetScheme(), busy)
	registerer.MustRegister(writer)
	return writer, mgr.Add(writer)
}

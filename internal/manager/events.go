package manager

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/manager/events"
	"github.com/readygate/readygate/internal/manager/turnstile"
)

// Rate of events. They tell of what was done and may come late: they give way to writes of nodes,
// and the turnstile lets them in last. One is written after another, so an API server that has
// much to do gets far fewer.
const (
	eventQPS   = 200
	eventBurst = 200
)

// newEvents makes a recorder of events that sends them while the manager runs.
func newEvents(mgr manager.Manager, registerer prometheus.Registerer, gate *turnstile.Turnstile) (*events.Herald, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.QPS, config.Burst = eventQPS, eventBurst
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	events := events.New(client.EventsV1(), mgr.GetScheme(), v1alpha1.Reporter, gate.WritesNodes)
	registerer.MustRegister(events)
	return events, mgr.Add(events)
}

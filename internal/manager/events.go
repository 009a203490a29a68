package manager

import (
	"context"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/readygate/readygate/api/node/v1alpha1"
)

// Rate of events. They tell of what was done and may come late; the turnstile lets them in
// last.
const (
	eventQPS   = 50
	eventBurst = 100
)

// newEvents makes a recorder of events that sends them while the manager runs.
func newEvents(mgr manager.Manager) (events.EventRecorder, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.QPS, config.Burst = eventQPS, eventBurst
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	send := standby(func(ctx context.Context) error {
		defer broadcaster.Shutdown()
		if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
	return broadcaster.NewRecorder(mgr.GetScheme(), v1alpha1.Reporter), mgr.Add(send)
}

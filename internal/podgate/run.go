package podgate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/boot"
	"github.com/readygate/readygate/internal/core/agents"
	"github.com/readygate/readygate/internal/podgate/probe"
	"github.com/readygate/readygate/internal/version"
)

//+kubebuilder:rbac:groups="",resources=pods;nodes,verbs=list;watch
//+kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
//+kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
//+kubebuilder:rbac:groups=readygate.dev,resources=podreadinessrules,verbs=list;watch
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
//+kubebuilder:rbac:groups=coordination.k8s.io,namespace=readygate-system,resources=leases,verbs=create;patch

var logger = log.Log.WithName("podgate")

// Run runs the agent until the context ends. It returns nil after a clean stop.
func (o *Options) Run(ctx context.Context) error {
	if err := o.Validate(); err != nil {
		return err
	}
	config, err := o.Config("readygate-podgate")
	if err != nil {
		return err
	}
	config.QPS = -1 // the number of workers limits it
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType, protobuf.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	api, err := kubernetes.NewForConfig(protobuf)
	if err != nil {
		return err
	}
	sources, err := NewSources(config, api, o.Node)
	if err != nil {
		return err
	}
	logger.Info("Starting", "version", version.Version, "node", o.Node)
	return o.run(log.IntoContext(ctx, logger), api, sources)
}

func (o *Options) run(ctx context.Context, api kubernetes.Interface, sources *Sources) error {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: api.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	changed := make(chan struct{}, 1)
	agent := &Agent{
		API: api, Sources: sources, Ask: (&probe.Asker{Root: o.HostRoot}).Ask, Boot: boot.ID(), Workers: o.Workers,
		Events: broadcaster.NewRecorder(scheme.Scheme, v1alpha1.Reporter), Metrics: NewMetrics(o.Registry), Clock: clock.RealClock{},
		Changed: func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		},
	}
	o.Registry.MustRegister(collector{agent})
	lease := &leaseWriter{
		Leases: api.CoordinationV1().Leases(agents.Namespace), Node: o.Node, Holder: o.holder(), Owner: sources.Owner,
		Report: func() agents.Report { return report(agent) }, Changed: changed,
	}

	all, running := errgroup.WithContext(ctx)
	all.Go(func() error {
		return serve(running, o.MetricsAddr, promhttp.HandlerFor(o.Registry, promhttp.HandlerOpts{}))
	})
	all.Go(func() error { return serve(running, o.HealthAddr, health(sources)) })
	all.Go(func() error {
		if err := agent.start(running); err != nil {
			return err
		}
		all.Go(func() error { // not before the caches are synced
			lease.Run(running)
			return nil
		})
		agent.run(running)
		return nil
	})
	if err := all.Wait(); ctx.Err() == nil {
		return err
	}
	return nil
}

func (o *Options) holder() string {
	if o.Holder != "" {
		return o.Holder
	}
	name, err := os.Hostname()
	if err != nil {
		return o.Node
	}
	return name
}

// report returns the agent's report for its lease.
func report(agent *Agent) agents.Report {
	report := agents.Report{Version: version.Version, Rules: map[types.UID]agents.RuleReport{}}
	for rule, tally := range agent.Tallies() {
		tally.Cut(agents.Listed)
		report.Rules[rule.UID] = agents.RuleReport{Generation: rule.Generation, Tally: *tally}
	}
	return report
}

// health serves /healthz, and /readyz, which succeeds when the caches are synced.
func health(sources *Sources) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := sources.Synced(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	return mux
}

// serve serves at an address until the context ends. It returns at once if the address disables it.
func serve(ctx context.Context, address string, handler http.Handler) error {
	if address == "" || address == "0" {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%w; podgate uses the node's network, where another process may use this port: choose another one with --metrics-bind-address or --health-probe-bind-address", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

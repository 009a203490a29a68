package manager

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/agents"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/core/reporters"
	admissioncontroller "github.com/readygate/readygate/internal/manager/admission"
	"github.com/readygate/readygate/internal/manager/leadership"
	"github.com/readygate/readygate/internal/manager/metricsauth"
	"github.com/readygate/readygate/internal/manager/node"
	"github.com/readygate/readygate/internal/manager/nodecache"
	noderulecontroller "github.com/readygate/readygate/internal/manager/noderule"
	"github.com/readygate/readygate/internal/manager/quota"
	"github.com/readygate/readygate/internal/manager/rulecache"
	"github.com/readygate/readygate/internal/manager/ruletaints"
	"github.com/readygate/readygate/internal/version"
)

var log = logf.Log.WithName("manager")

const (
	// stopTimeout is how long a stopping manager waits for work in progress.
	stopTimeout = 10 * time.Second

	// crdTimeout is how long a starting manager waits for the CRD.
	crdTimeout = 20 * time.Second

	// reconcileTimeout bounds one reconcile, so that a request without a response does not block a worker.
	reconcileTimeout = time.Minute

	// listRetentions is the default of ListRest, in settle times: an API server or a watch may be slower than expected.
	listRetentions = 12
)

// listRetention is how long an entry stays in the list of rule taints after the last trace of its rule is gone: at least as
// long as a reconcile that began before may still write a node.
func (o *Options) listRetention(fence *leadership.Fence) time.Duration {
	if o.ListRest > 0 {
		return o.ListRest
	}
	return max(listRetentions*o.SettleTime, reconcileTimeout+fence.UnansweredTimeout())
}

// Run runs the manager until the context ends. It returns nil after a clean stop.
func (o *Options) Run(ctx context.Context) error {
	if err := o.Validate(); err != nil {
		return err
	}
	config, err := o.restConfig()
	if err != nil {
		return err
	}
	lock, err := o.lock(config)
	if err != nil {
		return err
	}
	unfenced := rest.CopyConfig(config) // for a manager that waits without the lease
	wrapTransport(config, lock.Fence)
	strip := (&nodecache.Stripper{}).Strip
	mgr, err := o.newManager(config, lock, strip)
	if err != nil {
		return err
	}
	others := o.others()
	if err := o.addControllers(ctx, mgr, strip, lock.Fence, others); err != nil {
		return err
	}
	if err := o.addLeadership(mgr, lock, unfenced, others); err != nil {
		return err
	}
	if err := addHealth(mgr, lock); err != nil {
		return err
	}
	log.Info("Starting", "version", version.Version, "leaderElection", o.LeaderElect)
	return mgr.Start(ctx)
}

func (o *Options) newManager(cfg *rest.Config, lock *leadership.Lock, strip toolscache.TransformFunc) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, admissionv1.AddToScheme, coordinationv1.AddToScheme, v1alpha1.AddToScheme, podv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	nodes, err := nodecache.Nodes(cfg)
	if err != nil {
		return nil, err
	}
	options := manager.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			NewInformer:      newInformerFrom(nodes),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Node{}:      {Transform: strip},
				&appsv1.DaemonSet{}: {Transform: reporters.Strip},
				&coordinationv1.Lease{}: {
					Namespaces: map[string]cache.Config{agents.Namespace: {}},
					Label:      labels.SelectorFromSet(agents.Labels()),
				},
			},
		},
		Client:                              client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
		Metrics:                             o.metrics(),
		HealthProbeBindAddress:              o.HealthAddr,
		PprofBindAddress:                    o.PprofAddr,
		LeaderElection:                      true,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       ptr.To(leadership.LeaseDuration),
		RenewDeadline:                       ptr.To(leadership.RenewDeadline),
		RetryPeriod:                         ptr.To(leadership.RetryPeriod),
		GracefulShutdownTimeout:             ptr.To(stopTimeout),
		Controller:                          config.Controller{SkipNameValidation: ptr.To(true), ReconciliationTimeout: reconcileTimeout},
	}
	return manager.New(cfg, options)
}

// newInformerFrom returns a constructor of informers that uses the given source for nodes.
func newInformerFrom(nodes toolscache.ListerWatcher) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(source toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		if _, ok := obj.(*corev1.Node); ok {
			source = nodes
		}
		return toolscache.NewSharedIndexInformer(source, obj, resync, indexers)
	}
}

func (o *Options) metrics() metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.MetricsAddr, SecureServing: o.MetricsSecure, CertDir: o.MetricsCerts}
	if o.MetricsSecure {
		options.FilterProvider = metricsauth.Filter
	}
	return options
}

func (o *Options) addControllers(ctx context.Context, mgr manager.Manager, strip toolscache.TransformFunc, fence *leadership.Fence, others *leadership.Others) error {
	if err := waitForCRD(ctx, mgr.GetRESTMapper()); err != nil {
		return err
	}
	// A standby has synced caches, so that it can take over at once.
	if _, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.NodeReadinessRule{}, cache.BlockUntilSynced(false)); err != nil {
		return fmt.Errorf("watching rules: %w", err)
	}
	informer, err := mgr.GetCache().GetInformer(ctx, &corev1.Node{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	everyNode := nodecache.New(informer.(toolscache.SharedIndexInformer).GetStore()) // the default cache has no other kind
	daemonSets, err := everyDaemonSet(ctx, mgr.GetCache())
	if err != nil {
		return err
	}
	rules, failures, covered := rulecache.New(mgr.GetCache()), &node.Failures{}, admissioncontroller.New(clock.RealClock{}, o.SettleTime, admission.TaintNewNodesName, withoutPolicy)
	owners := ruletaints.New(mgr.GetAPIReader(), mgr.GetClient(), o.listNamespace(), clock.RealClock{})
	nodes := &node.Reconciler{
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Nodes:    everyNode,
		Rules:    rules,
		Failures: failures,
		Owners:   owners,
		Metrics:  node.NewMetrics(o.Registerer),
		Clock:    clock.RealClock{},

		Quota: quota.New(&node.Reader{Client: mgr.GetClient(), API: mgr.GetAPIReader(), Nodes: everyNode, Strip: strip}, fence, clock.RealClock{}),
	}
	events, err := newEvents(mgr, o.Registerer, nodes.Writing)
	if err != nil {
		return err
	}
	nodes.Events = events.Recorder(v1alpha1.Reporter)
	status := &noderulecontroller.Reconciler{
		Client:   mgr.GetClient(),
		Nodes:    everyNode,
		Rules:    rules,
		Failures: failures,
		Coverage: covered,
		Others:   others,
		Owners:   owners,
		ListRest: o.listRetention(fence),

		DaemonSets: daemonSets,
		Events:     nodes.Events,
		Metrics:    noderulecontroller.NewMetrics(o.Registerer),
		Clock:      clock.RealClock{},
		Busy:       nodes.Writing,
	}
	o.Registerer.MustRegister(noderulecontroller.NewCollector(status, mgr.Elected()), buildInfo())
	compared := admissioncontroller.NewMetrics(o.Registerer)
	policies := &admissioncontroller.Reconciler{
		Policy: taintNewNodes(rules, owners, mgr.GetAPIReader()), Manual: !o.ManagePolicies, Metrics: compared,
		Coverage: covered, Clock: clock.RealClock{},
	}
	return errors.Join(nodes.SetupWithManager(mgr, o.NodeWorkers), status.SetupWithManager(mgr, o.RuleWorkers), policies.SetupWithManager(mgr),
		o.addPods(mgr, everyNode, others, events.Recorder(podv1alpha1.Reporter), compared))
}

// orApply is how to install the mutating policies without the chart.
const orApply = ", or apply mutating-policies.yaml (with v1beta1: mutating-policies-v1beta1.yaml)"

// withoutPolicy describes nodes of a rule that the policy readygate-taint-new-nodes does not cover.
const withoutPolicy = "the manager adds the taint shortly after a node is created, unless its kubelet registers with the taint (--register-with-taints)"

// taintNewNodes is the policy with which the API server adds taints to new nodes. A rule is in the list of rule taints
// before the policy names it.
func taintNewNodes(rules *rulecache.Cache, owners *ruletaints.List, live client.Reader) admissioncontroller.Policy {
	return admissioncontroller.Policy{
		Name: admission.TaintNewNodesName,
		Compile: func(ctx context.Context) (admission.Compiled, error) {
			book, err := rules.Current(ctx)
			if err != nil {
				return admission.Compiled{}, err
			}
			return admission.CompileTaintNewNodes(book.Rules()), owners.Enter(ctx, book)
		},
		CompileLive: func(ctx context.Context) (admission.Compiled, error) {
			objs, err := rulecache.NodeRules(ctx, live)
			if err != nil {
				return admission.Compiled{}, err
			}
			book := noderule.NewRulebook(objs)
			return admission.CompileTaintNewNodes(book.Rules()), owners.Enter(ctx, book)
		},
		Spec: admission.TaintNewNodesSpec, Read: admission.ReadTaintNewNodes, Binding: admission.TaintNewNodesBinding(), Install: "run helm upgrade" + orApply, Without: withoutPolicy,
		Rule: &v1alpha1.NodeReadinessRule{},
		Same: func(before, after client.Object) bool {
			return noderule.SameRule(before.(*v1alpha1.NodeReadinessRule), after.(*v1alpha1.NodeReadinessRule))
		},
	}
}

// everyDaemonSet returns an iterator over all DaemonSets of the cache.
func everyDaemonSet(ctx context.Context, c cache.Cache) (func() iter.Seq[*appsv1.DaemonSet], error) {
	informer, err := c.GetInformer(ctx, &appsv1.DaemonSet{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching DaemonSets: %w", err)
	}
	store := informer.(toolscache.SharedIndexInformer).GetStore() // the default cache has no other kind
	return func() iter.Seq[*appsv1.DaemonSet] {
		return func(yield func(*appsv1.DaemonSet) bool) {
			for _, obj := range store.List() {
				if !yield(obj.(*appsv1.DaemonSet)) {
					return
				}
			}
		}
	}, nil
}

// waitForCRD waits up to crdTimeout for the CRD, which is often installed together with the manager.
func waitForCRD(ctx context.Context, mapper meta.RESTMapper) error {
	var missing error
	err := wait.PollUntilContextTimeout(ctx, time.Second, crdTimeout, true, func(context.Context) (bool, error) {
		err := crdInstalled(mapper)
		if meta.IsNoMatchError(err) {
			if missing == nil {
				log.Info("Waiting for the CRD", "reason", err.Error())
			}
			missing = err
			return false, nil
		}
		return err == nil, err
	})
	if wait.Interrupted(err) && missing != nil {
		return missing
	}
	return err
}

// crdInstalled returns an error with the next step if the CRD is missing.
func crdInstalled(mapper meta.RESTMapper) error {
	kind := schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "NodeReadinessRule"}
	_, err := mapper.RESTMapping(kind, v1alpha1.GroupVersion.Version)
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the cluster has no NodeReadinessRule API (%w): install the CRD %s first: kubectl apply -f dist/crds.yaml; "+
			"if Readygate is being removed, nodes may still be created with the taint: kubectl delete mutatingadmissionpolicybinding %s", err, v1alpha1.CRDName, admission.TaintNewNodesName)
	}
	if err != nil {
		return fmt.Errorf("looking up NodeReadinessRule: %w", err)
	}
	return nil
}

func buildInfo() prometheus.Collector {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "node_readiness_build_info",
		Help: "Always 1. The label version is the version of the manager.",
	}, []string{"version"})
	gauge.WithLabelValues(version.Version).Set(1)
	return gauge
}

// addHealth adds the health checks: /readyz succeeds when the caches are synced and a leader is known.
func addHealth(mgr manager.Manager, lock *leadership.Lock) error {
	synced := make(chan struct{})
	waitForSync := standby(func(ctx context.Context) error {
		if mgr.GetCache().WaitForCacheSync(ctx) {
			close(synced)
		}
		<-ctx.Done()
		return nil
	})
	caches := func(*http.Request) error {
		select {
		case <-synced:
			return nil
		default:
			return errors.New("caches are not synced yet")
		}
	}
	leader := func(*http.Request) error { return lock.Settled() }
	return errors.Join(mgr.Add(waitForSync), mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("caches", caches), mgr.AddReadyzCheck("leader", leader))
}

// standby is a runnable that runs on all replicas, leader or not.
type standby func(context.Context) error

func (s standby) Start(ctx context.Context) error { return s(ctx) }
func (standby) NeedLeaderElection() bool          { return false }

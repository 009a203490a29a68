package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/agents"
	admissioncontroller "github.com/readygate/readygate/internal/manager/admission"
	"github.com/readygate/readygate/internal/manager/leadership"
	"github.com/readygate/readygate/internal/manager/nodecache"
	"github.com/readygate/readygate/internal/manager/podrule"
)

// podsInterval is the time between two lookups of the CRD of PodReadinessRules.
const podsInterval = 10 * time.Second

// ungated describes pods of a rule that the policy readygate-gate-new-pods does not cover.
const ungated = "new pods are created without the gate, and are counted as ungated"

// addPods starts the controllers of PodReadinessRules when the cluster has their CRD. The controllers of nodes do not
// wait for it. While the lookup of the CRD fails, /readyz/podrules fails.
func (o *Options) addPods(mgr manager.Manager, nodes *nodecache.Cache, others *leadership.Others, events events.EventRecorder, compared *admissioncontroller.Metrics) error {
	if !o.servesPods() {
		log.Info("PodReadinessRules are not reconciled: podgate agents and their leases are in namespace "+agents.Namespace+", the manager is in another one", "namespace", o.namespace())
		return nil
	}
	lookup := &podsLookup{mapper: mgr.GetRESTMapper()}
	return errors.Join(mgr.AddReadyzCheck("podrules", lookup.check), mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := wait.PollUntilContextCancel(ctx, podsInterval, true, lookup.installed); err != nil {
			return nil //nolint:nilerr // the manager stops
		}
		log.Info("Starting the controllers of PodReadinessRules")
		return o.startPods(mgr, nodes, others, events, compared)
	})))
}

// podsLookup looks up the CRD of PodReadinessRules. It is safe for concurrent use.
type podsLookup struct {
	mapper meta.RESTMapper

	mu     sync.Mutex
	failed error
	last   string // the last message that was logged
}

// installed reports whether the cluster has the CRD. It never returns an error: it logs an error that is new, check
// returns it, and the lookup is repeated.
func (l *podsLookup) installed(context.Context) (bool, error) {
	_, err := l.mapper.RESTMapping(schema.GroupKind{Group: podv1alpha1.GroupVersion.Group, Kind: "PodReadinessRule"}, podv1alpha1.GroupVersion.Version)
	missing := meta.IsNoMatchError(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed = nil; err != nil && !missing {
		l.failed = fmt.Errorf("looking up PodReadinessRule failed; PodReadinessRules are not reconciled until it succeeds: %w", err)
	}
	switch {
	case err == nil || l.last == err.Error():
	case missing:
		log.Info("PodReadinessRules are not reconciled until the CRD "+podv1alpha1.CRDName+" is installed", "retryAfter", podsInterval.String())
	default:
		log.Error(err, "Looking up PodReadinessRule failed; PodReadinessRules are not reconciled until it succeeds", "retryAfter", podsInterval.String())
	}
	if err != nil {
		l.last = err.Error()
	}
	return err == nil, nil
}

// check is a health check that fails while the lookup of the CRD fails. Without the CRD it succeeds, and also on a
// standby, which looks up nothing.
func (l *podsLookup) check(*http.Request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// servesPods reports whether the manager reconciles PodReadinessRules.
func (o *Options) servesPods() bool {
	namespace := o.namespace()
	return namespace == "" || namespace == agents.Namespace
}

func (o *Options) startPods(mgr manager.Manager, nodes *nodecache.Cache, others *leadership.Others, events events.EventRecorder, compared *admissioncontroller.Metrics) error {
	latch := admission.Latch{Image: o.LatchImage}
	covered := admissioncontroller.New(clock.RealClock{}, o.SettleTime, admission.GateNewPodsName, ungated)
	compile := func(from client.Reader) func(context.Context) (admission.Compiled, error) {
		return func(ctx context.Context) (admission.Compiled, error) {
			rules, err := podrule.Rules(ctx, from)
			return admission.CompileGateNewPods(rules, latch), err
		}
	}
	gates := &admissioncontroller.Reconciler{
		Policy: admissioncontroller.Policy{
			Name: admission.GateNewPodsName, Compile: compile(mgr.GetClient()), CompileLive: compile(mgr.GetAPIReader()), Spec: admission.GateNewPodsSpec(latch), Read: admission.ReadGateNewPods(latch),
			Binding: admission.GateNewPodsBinding(), Install: "run helm upgrade with podgate.enabled=true" + orApply, Without: ungated, Rule: &podv1alpha1.PodReadinessRule{}, Same: podrule.Same,
		},
		Manual: !o.ManagePolicies, Metrics: compared,
		Coverage: covered, Clock: clock.RealClock{},
	}
	rules := &podrule.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Nodes: nodes, Coverage: covered, Others: others, HoldsStart: o.LatchImage != "", Manual: !o.ManagePolicies, Events: events,
		Metrics: podrule.NewMetrics(o.Registerer), Clock: clock.RealClock{},
	}
	return errors.Join(gates.SetupWithManager(mgr), rules.SetupWithManager(mgr))
}

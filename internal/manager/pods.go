package manager

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/agentlease"
	"github.com/readygate/readygate/internal/controller/admission"
	"github.com/readygate/readygate/internal/controller/podrule"
	"github.com/readygate/readygate/internal/coverage"
	"github.com/readygate/readygate/internal/herald"
	"github.com/readygate/readygate/internal/leadership"
	"github.com/readygate/readygate/internal/policy"
	"github.com/readygate/readygate/internal/roster"
	"github.com/readygate/readygate/internal/turnstile"
)

// podsInterval is how often a cluster without the CRD of rules for pods is asked whether it has it now.
const podsInterval = 10 * time.Second

// ungated is what becomes of pods where the gates policy does not cover a rule.
const ungated = "new pods are created without the gate, and are counted as ungated"

// addPods adds what looks after rules for pods, when the cluster has such rules. Nothing else waits for
// that: the node half works without.
func (o *Options) addPods(mgr manager.Manager, nodes *roster.Roster, gate *turnstile.Turnstile, others *leadership.Others) error {
	if !o.servesPods() {
		log.Info("Rules for pods are off: agents and their leases are in "+agentlease.Namespace+", and the manager is not", "namespace", o.namespace())
		return nil
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		kind := schema.GroupKind{Group: podv1alpha1.GroupVersion.Group, Kind: "PodReadinessRule"}
		told := false
		err := wait.PollUntilContextCancel(ctx, podsInterval, true, func(context.Context) (bool, error) {
			_, err := mgr.GetRESTMapper().RESTMapping(kind, podv1alpha1.GroupVersion.Version)
			if err == nil {
				return true, nil
			}
			if !told && meta.IsNoMatchError(err) {
				log.Info("Rules for pods are off: the cluster does not know PodReadinessRule; they are on when the CRD " + podv1alpha1.CRDName + " is installed")
				told = true
			}
			return false, nil
		})
		if err != nil { // the manager ends
			return nil //nolint:nilerr // that is no failure
		}
		return o.startPods(mgr, nodes, gate, others)
	}))
}

// namespace is where the manager runs; empty if that is not known, as outside of a cluster.
func (o *Options) namespace() string {
	if o.LeaseSpace != "" {
		return o.LeaseSpace
	}
	namespace, err := InClusterNamespace("--leader-election-namespace")
	if err != nil {
		return ""
	}
	return namespace
}

// servesPods says whether the manager looks after rules for pods.
func (o *Options) servesPods() bool {
	namespace := o.namespace()
	return namespace == "" || namespace == agentlease.Namespace
}

func (o *Options) startPods(mgr manager.Manager, nodes *roster.Roster, gate *turnstile.Turnstile, others *leadership.Others) error {
	api, err := kubernetes.NewForConfig(mgr.GetConfig())
	if err != nil {
		return err
	}
	events := herald.New(api.EventsV1(), mgr.GetScheme(), podv1alpha1.Reporter, gate.WritesNodes)
	latch := policy.Latch{Image: o.LatchImage}
	covered := coverage.New(clock.RealClock{}, o.SettleTime, policy.GatesName, ungated+"; use a shorter selector or fewer rules")
	compile := func(from client.Reader) func(context.Context) (policy.Compiled, error) {
		return func(ctx context.Context) (policy.Compiled, error) {
			rules, err := podrule.Rules(ctx, from)
			return policy.CompileGates(rules, latch), err
		}
	}
	gates := &admission.Reconciler{
		Policy: admission.Policy{
			Name: policy.GatesName, Compile: compile(mgr.GetClient()), CompileLive: compile(mgr.GetAPIReader()), Spec: policy.GatesSpec(latch), Read: policy.ReadGates(latch),
			Binding: policy.GatesBinding(), Install: "run helm upgrade with podgate.enabled=true, or apply policies.yaml", Without: ungated, Rule: &podv1alpha1.PodReadinessRule{}, Same: podrule.Same,
		},
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Coverage: covered, Clock: clock.RealClock{},
	}
	rules := &podrule.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Nodes: nodes, Coverage: covered, Others: others, HoldsStart: o.LatchImage != "", Events: events,
		Metrics: podrule.NewMetrics(o.Registerer), Clock: clock.RealClock{},
	}
	return errors.Join(mgr.Add(events), gates.SetupWithManager(mgr), rules.SetupWithManager(mgr))
}

package uninstall

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	nodev1alpha1 "github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/manager/leadership"
	"github.com/readygate/readygate/internal/mutatingpolicy"
	"github.com/readygate/readygate/internal/version"
)

var log = logf.Log.WithName("cleanup")

// Run cleans up. It returns nil if nothing of Readygate is left, except what stays on purpose.
func (o *Options) Run(ctx context.Context) error {
	if err := o.Validate(); err != nil {
		return err
	}
	config, err := o.complete()
	if err != nil {
		return err
	}
	c, err := newClient(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	log.Info("Starting", "version", version.Version, "namespace", o.Namespace, "rules", o.Rules)
	r := &run{Options: o, client: c}
	err = r.all(ctx, config)
	r.print(o.Out, err)
	return err
}

func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, autoscalingv1.AddToScheme, coordinationv1.AddToScheme, admissionv1.AddToScheme,
		nodev1alpha1.AddToScheme, podv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return mutatingpolicy.NewClient(config, client.Options{Scheme: scheme})
}

// run is one run of a cleanup.
type run struct {
	*Options
	summary
	client client.Client
}

// all runs all steps. A step that fails stops only the steps that depend on it.
func (r *run) all(ctx context.Context, config *rest.Config) error {
	stopped := r.stopWriters(ctx)
	err := leadership.Exclusively(ctx, config, r.Namespace, r.Peers, r.removeAll)
	var other *leadership.OtherLeaderError
	if errors.As(err, &other) {
		err = r.removeNextToOtherController(ctx, other)
	}
	return errors.Join(stopped, err)
}

// removeAll runs while no other controller leads. The finalizers of rules stay until all nodes are clean: they show
// that the cleanup is incomplete.
func (r *run) removeAll(ctx context.Context) error {
	failed := retry(ctx, r.removePolicies)
	known, unread := r.ruleTaints(ctx)
	if r.Rules == DeleteRules {
		failed = errors.Join(failed, retry(ctx, func(ctx context.Context) error { return r.deleteRules(ctx, nodeRules()) }))
	}
	nodes := errors.Join(unread, r.sweepNodes(ctx, known))
	r.keepUnlisted()
	failed = errors.Join(failed, nodes, r.removeConditions(ctx), r.removeGates(ctx))
	if nodes != nil {
		return errors.Join(failed, errors.New("NodeReadinessRules: not changed, because nodes are not clean"))
	}
	if err := r.releaseRules(ctx, nodeRules()); err != nil {
		return errors.Join(failed, err)
	}
	return errors.Join(failed, r.removeList(ctx))
}

// removeNextToOtherController runs while another controller enforces NodeReadinessRules: that controller owns nodes and
// rules, so only Readygate's records and condition are removed from them. Only Readygate enforces PodReadinessRules.
func (r *run) removeNextToOtherController(ctx context.Context, other *leadership.OtherLeaderError) error {
	log.Info("Another controller enforces the rules: taints and rules are not changed", "leader", other.Leader)
	r.stays("NodeReadinessRules, their finalizers and their taints on nodes: " + other.Leader + " enforces them")
	if len(r.Conditions) > 0 {
		r.stays("node conditions: enforced rules may require them")
	}
	failed := errors.Join(retry(ctx, r.removePolicies), r.disownNodes(ctx))
	if failed == nil {
		failed = r.removeList(ctx)
	}
	failed = errors.Join(failed, r.removeGates(ctx), retry(ctx, func(ctx context.Context) error { return r.removeSoleController(ctx, nodeRules()) }))
	if r.Rules == DeleteRules {
		failed = errors.Join(failed, fmt.Errorf("--rules=delete, but %w: stop that controller first, or use --rules=keep (crds.keep=true in the chart)", other))
	}
	return failed
}

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
	"github.com/readygate/readygate/internal/version"
)

var log = logf.Log.WithName("cleanup")

// Run cleans up. It returns nil if nothing of Readygate is left but what is meant to stay.
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
	return client.New(config, client.Options{Scheme: scheme})
}

// run is one run of a cleanup.
type run struct {
	*Options
	summary
	client client.Client
}

// all does every step. One that fails keeps back only those that rest on it.
func (r *run) all(ctx context.Context, config *rest.Config) error {
	stopped := r.stopWriters(ctx)
	err := leadership.Exclusively(ctx, config, r.Namespace, r.Peers, r.removeAll)
	var other *leadership.OtherLeaderError
	if errors.As(err, &other) {
		err = r.removeBesideOtherController(ctx, other)
	}
	return errors.Join(stopped, err)
}

// removeAll is what is done while nobody else leads. The finalizers of rules stay while nodes
// are not clean: with them everybody can see that something is left.
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
		return errors.Join(failed, errors.New("rules: left as they are, because nodes are not clean"))
	}
	if err := r.releaseRules(ctx, nodeRules()); err != nil {
		return errors.Join(failed, err)
	}
	return errors.Join(failed, r.removeList(ctx))
}

// removeBesideOtherController is what is done while another controller enforces the rules: nodes and rules are
// its, but for the records of what was put there by us. Rules for pods are nobody's but ours.
func (r *run) removeBesideOtherController(ctx context.Context, other *leadership.OtherLeaderError) error {
	log.Info("Another controller enforces the rules: nodes and rules are left to it", "leader", other.Leader)
	r.stays("rules, with their finalizers, and what they put on nodes: " + other.Leader + " enforces them")
	if len(r.Conditions) > 0 {
		r.stays("node conditions: rules that are enforced may rest on them")
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

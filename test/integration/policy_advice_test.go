package integration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// The API server warns about a rule with NoExecute and without maxUnavailable, with which one wrong report can drain all
// nodes. It does not reject the rule.
func TestNoExecuteWithoutMaxUnavailableIsAWarning(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	scheme := c.Client.Scheme()
	try := func(ctx context.Context, change func(*v1alpha1.NodeReadinessRule)) (warnings, error) {
		var w warnings
		config := rest.CopyConfig(c.Config)
		config.WarningHandler = &w
		admin, err := client.New(config, client.Options{Scheme: scheme})
		if err != nil {
			return nil, err
		}
		rule := testenv.Rule(id, func(r *v1alpha1.NodeReadinessRule) { r.Spec.Taint.Effect = corev1.TaintEffectNoExecute }, change)
		err = admin.Create(ctx, rule, client.DryRunAll)
		return w, err
	}
	testenv.Eventually(t, "a warning", func(ctx context.Context) error {
		w, err := try(ctx, func(*v1alpha1.NodeReadinessRule) {})
		if err != nil {
			return err
		}
		if len(w) != 1 || !strings.Contains(w[0], "spec.maxUnavailable is missing") || !strings.Contains(w[0], "e.g. 1 or 10%") {
			return fmt.Errorf("warnings %q", w)
		}
		return nil
	})
	for name, change := range map[string]func(*v1alpha1.NodeReadinessRule){
		"limited":        func(r *v1alpha1.NodeReadinessRule) { r.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(1)) },
		"bootstrap-only": testenv.BootstrapOnly,
		"NoSchedule":     func(r *v1alpha1.NodeReadinessRule) { r.Spec.Taint.Effect = corev1.TaintEffectNoSchedule },
	} {
		if w, err := try(t.Context(), change); err != nil || len(w) > 0 {
			t.Errorf("%s: %v, warnings %q, want none", name, err, w)
		}
	}
}

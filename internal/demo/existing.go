package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
)

// openExisting prepares the cluster that KUBECONFIG names, if the user agrees. Readygate is
// installed, and a manager run, only where there is none.
func (s *show) openExisting(ctx context.Context) error {
	stage, named, err := stageIn(s.dir)
	if err != nil {
		return err
	}
	there, err := stage.inspect(ctx)
	if err != nil {
		return fmt.Errorf("looking at the cluster of context %q: %w", named, err)
	}
	if err := s.script.suits(there); err != nil {
		return err
	}
	if err := s.agree(ctx, s.teller.say, s.plan(stage, named, there)); err != nil {
		return err
	}
	s.stage = stage // from here on there is something to take back
	if there.leader != "" {
		return nil
	}
	if err := stage.installCRDs(ctx); err != nil {
		return err
	}
	if err := stage.installManager(ctx, s.Root); err != nil {
		return err
	}
	if !there.lease {
		stage.remember(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: admission.ManagerNamespace, Name: v1alpha1.LeaseName}})
	}
	return s.startManager(ctx, true)
}

// stageIn is a stage in the cluster of the current context, whose name it returns.
func stageIn(dir string) (*stage, string, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil)
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, "", fmt.Errorf("reading KUBECONFIG: %w", err)
	}
	if len(raw.Contexts) == 0 {
		return nil, "", fmt.Errorf("KUBECONFIG is %q, which names no cluster: correct it, or unset it to play on a control plane of the demo's own", os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("reading KUBECONFIG: %w", err)
	}
	s, err := newStage(config)
	if err != nil {
		return nil, "", fmt.Errorf("connecting to the cluster of context %q: %w", raw.CurrentContext, err)
	}
	s.confined, s.kubeconfig = true, filepath.Join(dir, "kubeconfig")
	if err := errors.Join(clientcmdapi.MinifyConfig(&raw), clientcmdapi.FlattenConfig(&raw)); err != nil {
		return nil, "", fmt.Errorf("reading KUBECONFIG: %w", err)
	}
	return s, raw.CurrentContext, clientcmd.WriteToFile(raw, s.kubeconfig)
}

// surroundings are what was there before the demo.
type surroundings struct {
	api    bool   // NodeReadinessRule is known
	leader string // a manager that lives; empty: none
	lease  bool   // there is a lease where the demo's manager has its own

	podAPI   bool // PodReadinessRule is known
	podRules int
}

// suits says why a story cannot be played there. What rules of others ask of the pods of a story, the
// demo cannot play, and nobody would open their gates.
func (s *script) suits(there surroundings) error {
	const elsewhere = "unset KUBECONFIG to play this story on a control plane of the demo's own"
	switch {
	case !s.gatesPods():
		return nil
	case there.podRules > 0:
		return fmt.Errorf("there are %d rules for pods, which may select those of the demo: %s", there.podRules, elsewhere)
	case there.leader != "" && !there.podAPI:
		return fmt.Errorf("the Readygate that is there does not know PodReadinessRule: upgrade it, or %s", elsewhere)
	}
	return nil
}

// inspect looks at what is there, and refuses where the demo would do harm.
func (s *stage) inspect(ctx context.Context) (surroundings, error) {
	var there surroundings
	var rules v1alpha1.NodeReadinessRuleList
	if err := s.client.List(ctx, &rules); err == nil {
		there.api = true
	} else if !gone(err) {
		return there, err
	}
	var podRules podv1alpha1.PodReadinessRuleList
	if err := s.client.List(ctx, &podRules); err == nil {
		there.podAPI, there.podRules = true, len(podRules.Items)
	} else if !gone(err) {
		return there, err
	}
	if err := s.vacant(ctx); err != nil {
		return there, err
	}
	var err error
	if there.leader, there.lease, err = s.leader(ctx); err != nil {
		return there, err
	}
	if all := len(rules.Items) + there.podRules; there.leader == "" && all > 0 {
		return there, fmt.Errorf("there are %d rules, and no manager leads: the demo's would begin to enforce them on your nodes and pods; start yours, or delete the rules", all)
	}
	return there, nil
}

// vacant is an error if something of another demo is there.
func (s *stage) vacant(ctx context.Context) error {
	var nodes corev1.NodeList
	if err := s.client.List(ctx, &nodes, client.MatchingLabels{SimulatedLabel: "true"}, client.Limit(1)); err != nil {
		return err
	}
	err := s.client.Get(ctx, client.ObjectKey{Name: Namespace}, &corev1.Namespace{})
	switch {
	case err != nil && !gone(err):
		return err
	case err != nil && len(nodes.Items) == 0:
		return nil
	}
	return errors.New("another demo plays there, or one was killed; if none plays, take back what it left: make demo DEMO_CLUSTER=clean")
}

// leasePatience is longer than any leader waits before it renews its lease.
const leasePatience = 20 * time.Second

// leader is the holder of a lease of this API who renews it before our eyes.
func (s *stage) leader(ctx context.Context) (holder string, lease bool, err error) {
	first := map[string]time.Time{}
	for began := time.Now(); ; {
		var leases coordinationv1.LeaseList
		if err := s.client.List(ctx, &leases, client.MatchingFields{metav1.ObjectNameField: v1alpha1.LeaseName}); err != nil {
			return "", lease, err
		}
		waits := false
		for _, one := range leases.Items {
			lease = lease || one.Namespace == admission.ManagerNamespace
			who := ptr.Deref(one.Spec.HolderIdentity, "")
			if who == "" {
				continue
			}
			renewed := ptr.Deref(one.Spec.RenewTime, metav1.MicroTime{}).Time
			if before, known := first[one.Namespace]; known && !before.Equal(renewed) {
				return who, lease, nil
			} else if !known {
				first[one.Namespace] = renewed
			}
			waits = true
		}
		if !waits || time.Since(began) > leasePatience {
			return "", lease, nil
		}
		if err := sleep(ctx, look); err != nil {
			return "", lease, err
		}
	}
}

// plan says what the demo will do.
func (s *show) plan(stage *stage, named string, there surroundings) []string {
	nodes := s.script.Nodes()
	lines := []string{
		fmt.Sprintf("KUBECONFIG is set: the demo plays on the cluster of context %q (%s).", named, stage.config.Host),
		"It makes, and takes back at the end:",
		fmt.Sprintf("  %d simulated nodes, %s and so on, with the label %s=true and a taint that keeps other pods away", len(nodes), stage.node(nodes[0]), SimulatedLabel),
		fmt.Sprintf("  the namespace %s with pods that can run on these nodes only", Namespace),
	}
	for _, rule := range s.script.ruleNames() {
		whom := "these nodes"
		if isPodRule(s.script.ruleNamed(rule)) {
			whom = "these pods"
		}
		lines = append(lines, fmt.Sprintf("  the rule %s, for %s only", stage.rule(rule), whom))
	}
	if s.script.gatesPods() {
		lines = append(lines, "  what agents need and is not there: account and roles of "+admission.PodgateAccount+" in the namespace "+admission.ManagerNamespace+", and a lease for each of these nodes")
	}
	switch {
	case there.leader != "":
		lines = append(lines, "The manager that leads there enforces it: "+there.leader+".")
	case there.api:
		lines = append(lines, "  what a manager needs and is not there: namespace "+admission.ManagerNamespace+", account, roles, admission policies", "No manager leads there, and there are no rules: one runs in this process meanwhile.")
	default:
		lines = append(lines, "  Readygate, which is not there: CRDs "+v1alpha1.CRDName+" and "+podv1alpha1.CRDName+", namespace "+admission.ManagerNamespace+", account, roles, admission policies", "A manager runs in this process meanwhile.")
	}
	return lines
}

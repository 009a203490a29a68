package plugin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/noderule"
	"github.com/readygate/readygate/internal/core/podrule"
	"github.com/readygate/readygate/internal/mutatingpolicy"
	"github.com/readygate/readygate/internal/plugin/terminal"
	"github.com/readygate/readygate/internal/version"
)

func (s *session) policy() *cobra.Command {
	var latchImage, apiVersion string
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Print the admission policies that are compiled from the rules, for an administrator to apply",
		Long: `Prints the MutatingAdmissionPolicy readygate-taint-new-nodes, compiled from the NodeReadinessRules of
the cluster. If the cluster has PodReadinessRules or podgate is installed, it also prints
readygate-gate-new-pods. By default, the manager writes these policies. You need this command only
if the manager runs with --manage-policies=false (policies.managed=false in the chart): then an
administrator or a GitOps tool applies the policies, and the manager cannot change them.

Pipe the output into kubectl apply -f -, or commit it to the repository that your GitOps tool
applies. Repeat this after each rule is created, changed or deleted: until then, the rule's condition
TaintedAtCreation (for pods: Enforced) is False with the reason PolicyOutdated. The same rules give
the same output, so a diff shows what a rule changes. The bindings that put the policies into force
come with the chart or with make manifests. Use the plugin version that matches the manager.

The policy for nodes leaves out a rule to which the manager has not added its finalizer yet, because
the manager may not have recorded that rule. The command prints a warning.

With -f, the rules come from files and the command reads no cluster. The policies contain the UID of
each rule, which the API server sets, so write the files with kubectl get -o yaml.`,
		Example: `  kubectl readiness policy | kubectl diff -f -
  kubectl readiness policy | kubectl apply -f -
  kubectl readiness policy >gitops/readygate-policies.yaml
  kubectl get nrr,prr -o yaml | kubectl readiness policy -f - --latch-image=registry.example.com/readygate/readygate-podgate:1.0.0`,
	}
	manifests := addFiles(cmd)
	cmd.Flags().StringVar(&latchImage, "latch-image", "", "Image of the init container for rules with startHold, as in the manager's flag --latch-image. "+
		"If not set, the command reads it from the manager's Deployment (in --namespace, by default "+admission.ManagerNamespace+").")
	cmd.Flags().StringVar(&apiVersion, "policy-version", "", "Version of MutatingAdmissionPolicy: v1 or v1beta1. If not set, the version that the cluster serves; v1 with -f.")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if apiVersion != "" && !slices.Contains(mutatingpolicy.Versions, apiVersion) {
			return usagef("--policy-version is %q, must be one of %s", apiVersion, strings.Join(mutatingpolicy.Versions, ", "))
		}
		in := inputOfPolicies{latch: admission.Latch{Image: latchImage}, version: apiVersion, latchSet: cmd.Flags().Changed("latch-image")}
		var err error
		if len(manifests.names) > 0 {
			err = in.read(manifests, s.In)
		} else {
			err = s.readPolicyInput(cmd.Context(), &in)
		}
		if err != nil {
			return err
		}
		return s.printPolicies(&in)
	}
	return cmd
}

// inputOfPolicies is the input from which the policies are compiled.
type inputOfPolicies struct {
	rules    []*v1alpha1.NodeReadinessRule
	podRules []*podv1alpha1.PodReadinessRule
	latch    admission.Latch
	// version is the version of the policies; empty means the preferred one.
	version string
	// latchSet means that the latch image is known. Then, or with PodReadinessRules, the policy for new pods is printed.
	latchSet bool
}

// read reads rules from the output of kubectl get -o yaml.
func (in *inputOfPolicies) read(manifests *files, stdin io.Reader) error {
	inputs, err := manifests.read(stdin)
	if err != nil {
		return err
	}
	for _, input := range inputs {
		rules, err := objectsOf[v1alpha1.NodeReadinessRule](input, "NodeReadinessRule")
		if err != nil {
			return err
		}
		podRules, err := objectsOf[podv1alpha1.PodReadinessRule](input, "PodReadinessRule")
		if err != nil {
			return err
		}
		in.rules, in.podRules = append(in.rules, rules...), append(in.podRules, podRules...)
	}
	if len(in.rules)+len(in.podRules) == 0 {
		return errors.New("these files have no NodeReadinessRule and no PodReadinessRule: is it the right file, or is -R missing?")
	}
	for _, rule := range in.rules {
		if rule.UID == "" {
			return withoutUID("NodeReadinessRule", rule)
		}
	}
	for _, rule := range in.podRules {
		if rule.UID == "" {
			return withoutUID("PodReadinessRule", rule)
		}
	}
	if len(in.podRules) > 0 && !in.latchSet {
		return usagef("the files have a PodReadinessRule, but --latch-image is not set: pass the value of the manager's flag --latch-image, or --latch-image= if the manager has none")
	}
	return nil
}

func withoutUID(kind string, rule client.Object) error {
	return fmt.Errorf("%s %q has no metadata.uid, which the policy contains and the API server sets: apply the rule first, then run "+
		"'kubectl readiness policy' without -f, or 'kubectl get nrr,prr -o yaml | kubectl readiness policy -f -'", kind, rule.GetName())
}

// readPolicyInput reads the rules of the cluster, and the latch image of its manager unless a flag sets it.
func (s *session) readPolicyInput(ctx context.Context, in *inputOfPolicies) error {
	source, err := s.source()
	if err != nil {
		return err
	}
	if in.rules, err = source.Rules(ctx); err != nil {
		return err
	}
	if in.version == "" {
		if in.version, err = source.PolicyVersion(ctx); err != nil {
			return fmt.Errorf("%w; or set --policy-version", err)
		}
	}
	if in.podRules, err = source.PodRulesIfInstalled(ctx); err != nil || in.latchSet {
		return err
	}
	in.latch.Image, err = source.LatchImage(ctx, s.managerNamespace())
	switch {
	case apierrors.IsNotFound(err) && len(in.podRules) == 0: // the manager runs elsewhere, without podgate
		return nil
	case err != nil:
		return fmt.Errorf("reading the latch image from the manager's Deployment: %w; or pass it with --latch-image", err)
	}
	in.latchSet = in.latch.Image != ""
	return nil
}

// printPolicies prints the policies as YAML, and a warning per rule that they do not contain.
func (s *session) printPolicies(in *inputOfPolicies) error {
	book := noderule.NewRulebook(in.rules)
	// The manager enters a rule into the list of rule taints before it adds the finalizer. A record that the
	// policy wrote without an entry would stay when the rule is force-deleted.
	entered := map[types.UID]bool{}
	for _, rule := range in.rules {
		entered[rule.UID] = controllerutil.ContainsFinalizer(rule, v1alpha1.Finalizer)
	}
	taintNewNodes, compiled := admission.TaintNewNodesPolicy(), admission.CompileTaintNewNodes(slices.DeleteFunc(slices.Clone(book.Rules()), func(r *noderule.Rule) bool { return !entered[r.UID] }))
	taintNewNodes.Spec = admission.TaintNewNodesSpec(compiled)
	objects, names := []runtime.Object{taintNewNodes}, []string{}
	for _, rule := range book.Rules() {
		switch {
		case compiled.Covers(rule.UID):
			names = append(names, rule.Name)
		case compiled.LeavesOut(rule.UID):
			s.warnLeftOut(rule.Name, "the older rules leave no room for it in the policy: use a shorter selector or fewer rules")
		case rule.Active() && !entered[rule.UID]:
			s.warnLeftOut(rule.Name, "the manager has not added its finalizer "+v1alpha1.Finalizer+" yet: run this command again afterwards")
		case rule.Active():
			s.warnLeftOut(rule.Name, "the manager has not set its status.takenOverAt yet: run this command again afterwards")
		}
	}
	if len(in.podRules) > 0 || in.latchSet {
		rules := podrule.NewRules(in.podRules)
		gates, compiled := admission.GateNewPodsPolicy(), admission.CompileGateNewPods(rules, in.latch)
		gates.Spec = admission.GateNewPodsSpec(in.latch)(compiled)
		objects = append(objects, gates)
		for _, rule := range rules {
			switch {
			case compiled.Covers(rule.UID):
				names = append(names, rule.Name)
			case compiled.LeavesOut(rule.UID):
				s.warnLeftOut(rule.Name, "the older rules leave no room for it in the policy: use a shorter selector or fewer rules")
			}
		}
	}
	documents, err := in.yaml(objects)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		names = []string{"none"}
	}
	_, err = fmt.Fprintf(s.Out, "# Generated by kubectl readiness policy, version %s. Do not edit: run the command again when a rule changes.\n# Rules: %s\n%s",
		version.Version, terminal.Clean(strings.Join(names, ", ")), bytes.Join(documents, []byte("---\n")))
	return err
}

// yaml returns the policies in the version of the cluster.
func (in *inputOfPolicies) yaml(policies []runtime.Object) ([][]byte, error) {
	for i, policy := range policies {
		var err error
		if policies[i], err = mutatingpolicy.In(cmp.Or(in.version, mutatingpolicy.Versions[0]), policy); err != nil {
			return nil, err
		}
	}
	return admission.YAML(policies...)
}

func (s *session) warnLeftOut(rule, why string) {
	_, _ = fmt.Fprintf(s.ErrOut, "warning: the policy does not contain rule %s: %s\n", terminal.Clean(rule), why)
}

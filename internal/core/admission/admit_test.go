package admission_test

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

// The CEL environments of the oldest API servers: an API server accepts new expressions only if they compile in the
// environment of the minor version before its own.
var (
	oldestForMutating   = version.MajorMinor(1, 33)
	oldestForValidating = version.MajorMinor(1, 32)
)

func newCompiler(t rapid.TB, language *version.Version, variables []admissionv1.Variable, options cel.OptionalVariableDeclarations) *cel.CompositedCompiler {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(language))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range variables {
		if result := compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, options, environment.NewExpressions); result.Error != nil {
			t.Fatalf("variable %s: %v\n%s", v.Name, result.Error, v.Expression)
		}
	}
	return compiler
}

func newMatcher(t rapid.TB, compiler *cel.CompositedCompiler, conditions []admissionv1.MatchCondition, options cel.OptionalVariableDeclarations) matchconditions.Matcher {
	t.Helper()
	accessors := make([]cel.ExpressionAccessor, len(conditions))
	for i := range conditions {
		accessors[i] = (*matchconditions.MatchCondition)(&conditions[i])
	}
	evaluator := compiler.CompileCondition(accessors, options, environment.NewExpressions)
	mustCompile(t, evaluator.CompilationErrors())
	// Whatever the failure policy is, a test must report an error.
	return matchconditions.NewMatcher(evaluator, ptr.To(admissionv1.Fail), "policy", "test", "test")
}

func mustCompile(t rapid.TB, errs []error) {
	t.Helper()
	if len(errs) > 0 {
		t.Fatal(errs)
	}
}

// mutator is a mutating policy for nodes, compiled by the API server's own code.
type mutator struct {
	compiler *cel.CompositedCompiler
	matcher  matchconditions.Matcher
	patchers []patch.Patcher
	budget   int64
}

func newMutator(t rapid.TB, spec admissionv1.MutatingAdmissionPolicySpec) *mutator {
	t.Helper()
	return newMutatorFor(t, oldestForMutating, spec)
}

func newMutatorFor(t rapid.TB, language *version.Version, spec admissionv1.MutatingAdmissionPolicySpec) *mutator {
	t.Helper()
	options := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	m := &mutator{compiler: newCompiler(t, language, spec.Variables, options), budget: celconfig.RuntimeCELCostBudget}
	m.matcher = newMatcher(t, m.compiler, spec.MatchConditions, options)
	options.HasPatchTypes = true
	for _, mutation := range spec.Mutations {
		evaluator := m.compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: mutation.JSONPatch.Expression}, options, environment.NewExpressions)
		mustCompile(t, evaluator.CompilationErrors())
		m.patchers = append(m.patchers, patch.NewJSONPatcher(evaluator))
	}
	return m
}

// admit is the node as the policy leaves it, the same on every API server. Nothing may fail.
func (m *mutator) admit(t rapid.TB, r request) *corev1.Node {
	t.Helper()
	admitted, err := m.mutate(r)
	if err != nil {
		t.Fatalf("%v\n%+v", err, r.object)
	}
	before, err := m.mutate(r.untyped(t))
	if err != nil {
		t.Fatalf("an older API server: %v\n%+v", err, r.object)
	}
	older := &corev1.Node{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(before.(*unstructured.Unstructured).Object, older); err != nil {
		t.Fatal(err)
	}
	node := admitted.(*corev1.Node)
	if !equality.Semantic.DeepEqual(older, node) {
		t.Fatalf("an older API server makes of it\n%+v\nand a new one\n%+v", older, node)
	}
	return node
}

func (m *mutator) mutate(r request) (runtime.Object, error) {
	ctx := m.compiler.CreateContext(context.Background())
	attributes := r.attributes()
	match := m.matcher.Match(ctx, attributes, nil, nil)
	if match.Error != nil {
		return nil, fmt.Errorf("match condition: %w", match.Error)
	}
	if !match.Matches {
		return r.object, nil
	}
	for _, patcher := range m.patchers {
		patched, err := patcher.Patch(ctx, patch.Request{
			MatchedResource: r.gvr(), VersionedAttributes: attributes, ObjectInterfaces: apiadmission.NewObjectInterfacesFromScheme(scheme.Scheme),
		}, m.budget)
		if err != nil {
			return nil, err
		}
		attributes.UpdateObject(patched)
	}
	return attributes.VersionedObject.Object(), nil
}

// validator is a validating policy, compiled and asked by the API server's own code.
type validator struct{ validating.Validator }

func newValidator(t rapid.TB, spec admissionv1.ValidatingAdmissionPolicySpec) validator {
	t.Helper()
	return newValidatorFor(t, oldestForValidating, spec)
}

func newValidatorFor(t rapid.TB, language *version.Version, spec admissionv1.ValidatingAdmissionPolicySpec) validator {
	t.Helper()
	options := cel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil, HasAuthorizer: true}
	compiler := newCompiler(t, language, spec.Variables, options)
	matcher := newMatcher(t, compiler, spec.MatchConditions, options)
	checks, messages := make([]cel.ExpressionAccessor, len(spec.Validations)), make([]cel.ExpressionAccessor, len(spec.Validations))
	for i, v := range spec.Validations {
		checks[i] = &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason}
		if v.MessageExpression != "" {
			messages[i] = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
	}
	checking := compiler.CompileCondition(checks, options, environment.NewExpressions)
	mustCompile(t, checking.CompilationErrors())
	options.HasAuthorizer = false
	telling := compiler.CompileCondition(messages, options, environment.NewExpressions)
	mustCompile(t, telling.CompilationErrors())
	audit := compiler.CompileCondition(nil, options, environment.NewExpressions)
	return validator{validating.NewValidator(checking, matcher, audit, telling, ptr.To(admissionv1.Fail), nil)}
}

// refuses says with which messages the policy refuses the request, the same on every API
// server; none means that the policy admits the request. No expression may fail.
func (v validator) refuses(t rapid.TB, r request) []string {
	t.Helper()
	messages, err := v.validate(r)
	if err != nil {
		t.Fatalf("%v\n%+v", err, r.object)
	}
	older, err := v.validate(r.untyped(t))
	if err != nil {
		t.Fatalf("an older API server: %v\n%+v", err, r.object)
	}
	if len(older) != len(messages) { // what a message lists from a map is in any order
		t.Fatalf("an older API server refuses with %q, and a new one with %q", older, messages)
	}
	return messages
}

func (v validator) validate(r request) ([]string, error) {
	result := v.Validate(context.Background(), r.gvr(), r.attributes(), r.params, nil, celconfig.RuntimeCELCostBudget, nil)
	var messages []string
	for _, decision := range result.Decisions {
		switch {
		case decision.Evaluation == validating.EvalError:
			return nil, fmt.Errorf("evaluating: %s", strings.TrimSpace(decision.Message))
		case decision.Action == validating.ActionDeny:
			messages = append(messages, decision.Message)
		}
	}
	return messages, nil
}

package admission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/latchkey"
	"github.com/readygate/readygate/internal/core/podrule"
)

// Latch configures the init container that holds the start of pods.
type Latch struct {
	// Image is the image of the latch; empty: startHold has no effect.
	Image string
}

// CompileGateNewPods compiles the active rules, oldest first. Rules that do not fit are left out: their pods are not gated,
// and count as ungated.
func CompileGateNewPods(rules []*podrule.Rule, latch Latch) Compiled {
	return build(func(yield func(types.UID, Text) bool) {
		for _, rule := range rules {
			if !rule.Active() {
				continue
			}
			if !yield(rule.UID, Text{Concerns: asksFor(rule, latch), Hold: asked(rule, latch)}) {
				return
			}
		}
	})
}

// asksFor is the expression that the rule may add something that the pod does not have. Match conditions have the name of
// the namespace, and not its labels.
func asksFor(rule *podrule.Rule, latch Latch) string {
	lacks := fmt.Sprintf("!(%[1]s in gates && %[1]s in noted)", quote(rule.Gate))
	if holds(rule, latch) {
		lacks = "(" + lacks + " || keyed || !latched)"
	}
	terms := []string{lacks}
	if excluded := rule.Excludes(); len(excluded) > 0 {
		terms = append(terms, fmt.Sprintf("!(request.namespace in %s)", quoteAll(excluded)))
	}
	if len(rule.Pods()) > 0 {
		terms = append(terms, selects(sorted(rule.Pods()), "labels"))
	}
	return allOf(terms)
}

// sorted returns requirements in the order of their text. The order of requirements for the same label is random, and each
// change of the policy makes every API server compile it.
func sorted(requirements labels.Requirements) labels.Requirements {
	return slices.SortedFunc(slices.Values(requirements), func(a, b labels.Requirement) int { return strings.Compare(a.String(), b.String()) })
}

// asked is the expression for what a concerned rule adds. The latch gets the deadline only if it opens by itself at that
// time.
func asked(rule *podrule.Rule, latch Latch) string {
	hold, deadline := "", ""
	if holds(rule, latch) {
		hold = "true"
		if rule.OpenLate && rule.Deadline > 0 {
			deadline = strconv.Itoa(int(rule.Deadline / time.Second))
		}
	}
	return fmt.Sprintf("%s ? {\"gate\": %s, \"hold\": %s, \"deadline\": %s} : {}",
		selects(sorted(rule.Namespaces()), "variables.namespaceLabels"), quote(rule.Gate), quote(hold), quote(deadline))
}

func holds(rule *podrule.Rule, latch Latch) bool { return rule.StartHold && latch.Image != "" }

// The parts of the match condition around the rules: the pod is one that rules may select.
const (
	gatesStart = "!object.spec.?hostNetwork.orValue(false) && !('" + corev1.MirrorPodAnnotationKey + "' in object.metadata.?annotations.orValue({})) && " +
		"object.metadata.?labels[?'" + v1alpha1.OptOutLabel + "'].orValue('') != '" + v1alpha1.OptOut + "' &&\n" +
		"object.spec.?os.?name.orValue('') != 'windows' && object.spec.?nodeSelector[?'" + corev1.LabelOSStable + "'].orValue('') != 'windows' &&\n" +
		"[object.metadata.?labels.orValue({})].exists(labels, [" + podGates + "].exists(gates, [" + podNoted + "].exists(noted, [" + podLatched + "].exists(latched, [" + podKeyed + "].exists(keyed,\n"
	gatesEnd = ")))))"

	podGates = "object.spec.?readinessGates.orValue([]).map(g, g.conditionType)"
	podNoted = "object.metadata.?annotations[?'" + v1alpha1.GatesAnnotation + "'].orValue('').split(' ')"
	// podLatched is the expression that the pod has a latch, or another container or volume with the name of the latch.
	podLatched = "object.spec.?initContainers.orValue([]).exists(c, c.name == '" + v1alpha1.LatchName + "') || " +
		"object.spec.containers.exists(c, c.name == '" + v1alpha1.LatchName + "') || " +
		"object.spec.?volumes.orValue([]).exists(v, v.name == '" + v1alpha1.LatchName + "')"
	// podKeyed is the expression that the manifest of the pod contains a key, e.g. of a copied or restored pod.
	podKeyed = "'" + v1alpha1.LatchAnnotation + "' in object.metadata.?annotations.orValue({})"
)

// GateNewPodsSpec is the whole policy. It changes only pods that a rule selects. No expression in it can fail: an absent
// field is empty. The policy never blocks the creation of a pod.
func GateNewPodsSpec(latch Latch) func(Compiled) admissionv1.MutatingAdmissionPolicySpec {
	return func(c Compiled) admissionv1.MutatingAdmissionPolicySpec {
		variables := []admissionv1.Variable{
			{Name: "labels", Expression: "object.metadata.?labels.orValue({})"},
			{Name: "namespaceLabels", Expression: "namespaceObject.?metadata.?labels.orValue({})"},
			{Name: "gates", Expression: podGates},
			{Name: "noted", Expression: podNoted + ".filter(g, g != '')"},
			{Name: "latched", Expression: podLatched},
			{Name: "keyed", Expression: podKeyed},
		}
		list := make([]string, 0, len(c.order))
		for _, name := range c.order {
			variables = append(variables, admissionv1.Variable{Name: name, Expression: c.rules[name].Hold})
			list = append(list, fmt.Sprintf("%s ? variables.%s : {}", c.rules[name].Concerns, name))
		}
		variables = append(variables,
			// Only the variables of concerned rules are evaluated: each has a cost.
			admissionv1.Variable{Name: "rules", Expression: "[variables.labels].map(labels, [variables.gates].map(gates, [variables.noted].map(noted, [variables.latched].map(latched, [variables.keyed].map(keyed, [\n" +
				strings.Join(list, ",\n") + "])))))[0][0][0][0][0]"},
			admissionv1.Variable{Name: "asked", Expression: "variables.rules.filter(r, r.size() > 0)"},
			// API servers of 1.34 compile new expressions with the CEL of 1.33, which has no distinct().
			admissionv1.Variable{Name: "wanted", Expression: "[variables.asked.map(r, r.gate)].map(gates, gates.transformList(i, g, gates.indexOf(g) == i, g))[0]"},
			admissionv1.Variable{Name: "added", Expression: "variables.wanted.filter(g, !(g in variables.gates))"},
			admissionv1.Variable{Name: "noting", Expression: "variables.wanted.filter(g, !(g in variables.noted))"},
			admissionv1.Variable{Name: "holding", Expression: "variables.asked.filter(r, r.hold != '')"},
			admissionv1.Variable{Name: "holds", Expression: "variables.latched ? [] : variables.holding"},
			// If all rules open at their deadline, the latch opens by itself at the last deadline.
			admissionv1.Variable{Name: "deadline", Expression: "variables.holds.size() == 0 || variables.holds.exists(r, r.deadline == '') ? '' : string(variables.holds.map(r, int(r.deadline)).max())"},
		)
		return admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: podsOnly(),
			MatchConditions:  []admissionv1.MatchCondition{{Name: "a-rule-is-concerned", Expression: c.concernsAny(gatesStart, gatesEnd)}},
			Variables:        variables,
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeJSONPatch,
				JSONPatch: &admissionv1.JSONPatch{Expression: gatesPatch + " +\n" + keyPatch + " +\n" + latchPatch(latch)},
			}},
			FailurePolicy:      ptr.To(admissionv1.Ignore),
			ReinvocationPolicy: admissionv1.IfNeededReinvocationPolicy,
		}
	}
}

// ReadGateNewPods returns the part of a stored policy that depends on rules.
func ReadGateNewPods(latch Latch) func(*admissionv1.MutatingAdmissionPolicySpec) Compiled {
	return func(spec *admissionv1.MutatingAdmissionPolicySpec) Compiled {
		return readCompiled(spec, gatesStart, gatesEnd, GateNewPodsSpec(latch))
	}
}

// gatesPatch appends gates, and lists the gates of rules in an annotation.
const gatesPatch = `(variables.added.size() == 0 || has(object.spec.readinessGates) ? [] : [JSONPatch{op: "add", path: "/spec/readinessGates", value: []}]) +
variables.added.map(g, JSONPatch{op: "add", path: "/spec/readinessGates/-", value: Object.spec.readinessGates{conditionType: g}}) +
(variables.noting.size() == 0 || has(object.metadata.annotations) ? [] : [JSONPatch{op: "add", path: "/metadata/annotations", value: {}}]) +
(variables.noting.size() == 0 ? [] : [JSONPatch{op: "add", path: "/metadata/annotations/readygate.dev~1gates", value: (variables.noted + variables.noting).join(" ")}])`

// keyPatch removes a key from the manifest of a pod. The key belongs to another pod: a key that was copied after Readygate
// was uninstalled would open every latch.
const keyPatch = `(variables.keyed && variables.holding.size() > 0 ? [JSONPatch{op: "remove", path: "/metadata/annotations/readygate.dev~1latch"}] : [])`

// tokenDir is the mount path of a service account's token: the API server mounts the token into every container that has
// no other mount there.
const tokenDir = "/var/run/secrets/kubernetes.io/serviceaccount" //nolint:gosec // a path

// latchUser is the user and group of the latch. It is set only if the pod runs as root, because the latch does not start as
// root. Otherwise the user of the pod or of the image applies: cluster policies may require a range of users.
const latchUser = "object.spec.?securityContext.?runAsUser.orValue(1) == 0 ? optional.of(65532) : optional.none()"

// latchPatch adds the latch before all other init containers. The latch has the CPU, memory and ephemeral storage of the
// pod's first container, so that QoS class, quota and scheduling do not change: init containers run before the other
// containers.
func latchPatch(latch Latch) string {
	resources := func(kind string) string {
		var entries []string
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
			entries = append(entries, fmt.Sprintf("?%q: object.spec.containers[?0].?resources.?%s[?%q]", name, kind, name))
		}
		return "{" + strings.Join(entries, ", ") + "}"
	}
	const key = "metadata.annotations['" + v1alpha1.LatchAnnotation + "']"
	return strings.Join([]string{
		`(variables.holds.size() == 0 ? [] :`,
		`(has(object.spec.initContainers) ? [] : [JSONPatch{op: "add", path: "/spec/initContainers", value: []}]) +`,
		`(has(object.spec.volumes) ? [] : [JSONPatch{op: "add", path: "/spec/volumes", value: []}]) +`,
		`[JSONPatch{op: "add", path: "/spec/volumes/-", value: Object.spec.volumes{`,
		`  name: ` + quote(v1alpha1.LatchName) + `,`,
		`  downwardAPI: Object.spec.volumes.downwardAPI{items: [Object.spec.volumes.downwardAPI.items{path: ` + quote(latchkey.File) +
			`, fieldRef: Object.spec.volumes.downwardAPI.items.fieldRef{apiVersion: "v1", fieldPath: ` + quote(key) + `}}]}}},`,
		`JSONPatch{op: "add", path: "/spec/initContainers/0", value: Object.spec.initContainers{`,
		`  name: ` + quote(v1alpha1.LatchName) + `,`,
		`  image: ` + quote(latch.Image) + `,`,
		`  imagePullPolicy: "IfNotPresent",`,
		`  command: [` + quote(latchkey.Command) + `],`,
		`  env: [`,
		latchVariable(latchkey.PodIP, "status.podIP"), latchVariable(latchkey.PodName, "metadata.name"), latchVariable(latchkey.PodNamespace, "metadata.namespace"),
		`    Object.spec.initContainers.env{name: ` + quote(latchkey.Deadline) + `, value: variables.deadline}],`,
		`  resources: Object.spec.initContainers.resources{`,
		`    requests: ` + resources("requests") + `,`,
		`    limits: ` + resources("limits") + `},`,
		`  volumeMounts: [`,
		`    Object.spec.initContainers.volumeMounts{name: ` + quote(v1alpha1.LatchName) + `, mountPath: ` + quote(latchkey.Volume) + `, readOnly: true},`,
		`    Object.spec.initContainers.volumeMounts{name: ` + quote(v1alpha1.LatchName) + `, mountPath: ` + quote(tokenDir) + `, readOnly: true}],`,
		`  securityContext: Object.spec.initContainers.securityContext{`,
		`    runAsNonRoot: true, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true,`,
		`    ?runAsUser: ` + latchUser + `,`,
		`    ?runAsGroup: ` + latchUser + `,`,
		`    capabilities: Object.spec.initContainers.securityContext.capabilities{drop: ["ALL"]},`,
		`    seccompProfile: Object.spec.initContainers.securityContext.seccompProfile{type: "RuntimeDefault"}}}}])`,
	}, "\n")
}

// latchVariable is an environment variable of the latch that the kubelet sets to a field of the pod.
func latchVariable(name, field string) string {
	const ref = "Object.spec.initContainers.env.valueFrom"
	return fmt.Sprintf("    Object.spec.initContainers.env{name: %s, valueFrom: %s{fieldRef: %s.fieldRef{apiVersion: \"v1\", fieldPath: %s}}},", quote(name), ref, ref, quote(field))
}

// GateNewPodsPolicy is the policy for new pods as an administrator installs it: it has no effect until the manager adds the
// rules.
func GateNewPodsPolicy() *admissionv1.MutatingAdmissionPolicy {
	return mutating(GateNewPodsName, GateNewPodsSpec(Latch{})(Compiled{}))
}

// GateNewPodsBinding binds the policy for new pods. It limits the policy to one resource, whatever the policy contains: the
// manager may write the policy, and not the binding.
func GateNewPodsBinding() *admissionv1.MutatingAdmissionPolicyBinding {
	return mutatingBinding(GateNewPodsName, nil, podsOnly())
}

// podsOnly matches the creation of pods.
func podsOnly() *admissionv1.MatchResources {
	return match("", "v1", []string{"pods"}, admissionv1.Create)
}

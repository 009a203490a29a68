package admission_test

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/podrule"
)

const (
	networkGate = v1alpha1.DefaultGate
	otherGate   = "example.com/other"
	foreignGate = "example.com/foreign" // of another controller

	programmed = "policy.example.com/programmed" // what rules wait for
)

// podLatch is the latch of most cases.
var podLatch = admission.Latch{Image: "registry.example.com/readygate-podgate:v1"}

type podRuleOption func(*v1alpha1.PodReadinessRule)

// podRule is a rule for all pods, with the well-known gate.
func podRule(name string, options ...podRuleOption) *v1alpha1.PodReadinessRule {
	r := &v1alpha1.PodReadinessRule{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "PodReadinessRule"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: uidOf(name), Generation: 1, CreationTimestamp: metav1.NewTime(dayOne)},
		Spec: v1alpha1.PodReadinessRuleSpec{
			Components: []v1alpha1.Component{{Name: "policy", PodCondition: &v1alpha1.ConditionComponent{Type: programmed}}},
		},
	}
	for _, option := range options {
		option(r)
	}
	return r
}

func withGate(gate string) podRuleOption {
	return func(r *v1alpha1.PodReadinessRule) { r.Spec.Gate = gate }
}

func holdsStart(r *v1alpha1.PodReadinessRule) { r.Spec.StartHold = true }

func opensAfter(seconds int32) podRuleOption {
	return func(r *v1alpha1.PodReadinessRule) {
		r.Spec.DeadlineSeconds, r.Spec.OnDeadline = &seconds, v1alpha1.DeadlineOpen
	}
}

func reportsAfter(seconds int32) podRuleOption {
	return func(r *v1alpha1.PodReadinessRule) {
		r.Spec.DeadlineSeconds, r.Spec.OnDeadline = &seconds, v1alpha1.DeadlineReport
	}
}

func beingDeleted(r *v1alpha1.PodReadinessRule) { r.DeletionTimestamp = &metav1.Time{Time: noon} }

func ofNamespaces(selector *v1alpha1.LabelSelector) podRuleOption {
	return func(r *v1alpha1.PodReadinessRule) { r.Spec.NamespaceSelector = selector }
}

func ofPods(selector *v1alpha1.LabelSelector) podRuleOption {
	return func(r *v1alpha1.PodReadinessRule) { r.Spec.PodSelector = selector }
}

// exactly selects what has this label.
func exactly(key, value string) *v1alpha1.LabelSelector {
	return &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{key: v1alpha1.LabelValue(value)}}
}

func matching(expressions ...v1alpha1.LabelSelectorRequirement) *v1alpha1.LabelSelector {
	return &v1alpha1.LabelSelector{MatchExpressions: expressions}
}

func labelled(key, operator string, values ...string) v1alpha1.LabelSelectorRequirement {
	e := v1alpha1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOperator(operator)}
	for _, value := range values {
		e.Values = append(e.Values, v1alpha1.LabelValue(value))
	}
	return e
}

func podRules(objs ...*v1alpha1.PodReadinessRule) []*v1alpha1.PodReadinessRule { return objs }

// gates is what the rules make of the policy.
func gates(objs ...*v1alpha1.PodReadinessRule) admission.Compiled {
	return admission.CompileGateNewPods(podrule.NewRules(objs), podLatch)
}

type podOption func(*corev1.Pod)

// pod is a pod of the namespace shop with one container.
func pod(options ...podOption) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Namespace: "shop"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}
	for _, option := range options {
		option(p)
	}
	return p
}

func inNamespace(name string) podOption { return func(p *corev1.Pod) { p.Namespace = name } }

func podLabel(key, value string) podOption {
	return func(p *corev1.Pod) { metav1.SetMetaDataLabel(&p.ObjectMeta, key, value) }
}

func podNote(key, value string) podOption {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
}

// hasGates puts readiness gates on the pod.
func hasGates(types ...string) podOption {
	return func(p *corev1.Pod) {
		for _, gate := range types {
			p.Spec.ReadinessGates = append(p.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: corev1.PodConditionType(gate)})
		}
	}
}

func initContainer(name string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: name, Image: "init"})
	}
}

// sidecar is a container that starts before the others and stays.
func sidecar(name string) podOption {
	return func(p *corev1.Pod) {
		always := corev1.ContainerRestartPolicyAlways
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: name, Image: "sidecar", RestartPolicy: &always})
	}
}

func container(name string, resources corev1.ResourceRequirements) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name, Image: "other", Resources: resources})
	}
}

// firstTakes gives the first container resources.
func firstTakes(resources corev1.ResourceRequirements) podOption {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources = resources }
}

func volume(name string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
}

func runsOn(os corev1.OSName) podOption {
	return func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: os} }
}

func runsAs(security *corev1.PodSecurityContext) podOption {
	return func(p *corev1.Pod) { p.Spec.SecurityContext = security }
}

// forNodes is for nodes with this operating system.
func forNodes(os string) podOption {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: os} }
}

// resources are written as in "cpu", "1", "memory", "1Gi".
func resources(words ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for pair := range slices.Chunk(words, 2) {
		list[corev1.ResourceName(pair[0])] = resource.MustParse(pair[1])
	}
	return list
}

func gateNames(p *corev1.Pod) []string {
	names := make([]string, len(p.Spec.ReadinessGates))
	for i, gate := range p.Spec.ReadinessGates {
		names[i] = string(gate.ConditionType)
	}
	return names
}

func containerNames(containers []corev1.Container) []string {
	names := make([]string, len(containers))
	for i := range containers {
		names[i] = containers[i].Name
	}
	return names
}

// createdPod is the creation of a pod by a user.
func createdPod(p *corev1.Pod) request {
	p = p.DeepCopy()
	p.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	return request{
		kind: corev1.SchemeGroupVersion.WithKind("Pod"), resource: "pods", namespace: p.Namespace, operation: apiadmission.Create, object: p,
		user: user.DefaultInfo{Name: "alice"},
	}
}

// updatedPod is the update of a pod by a user.
func updatedPod(old, p *corev1.Pod) request {
	r := createdPod(p)
	r.operation, r.old = apiadmission.Update, createdPod(old).object
	return r
}

// removedPod is the deletion of a pod.
func removedPod(p *corev1.Pod) request {
	r := createdPod(p)
	r.operation, r.object, r.old = apiadmission.Delete, nil, r.object
	return r
}

// connectedPod is a command that is run in a pod.
func connectedPod() request {
	r := createdPod(pod()).of("exec")
	r.operation, r.object = apiadmission.Connect, &corev1.PodExecOptions{}
	return r
}

// gater is the policy for new pods, compiled by the API server's own code.
type gater struct{ *mutator }

func newGater(t rapid.TB, objs ...*v1alpha1.PodReadinessRule) gater {
	t.Helper()
	return gater{newMutator(t, admission.GateNewPodsSpec(podLatch)(gates(objs...)))}
}

// admit is the pod as the policy leaves it, in a namespace with these labels, the same on every
// API server. Nothing may fail.
func (g gater) admit(t rapid.TB, p *corev1.Pod, labels map[string]string) *corev1.Pod {
	t.Helper()
	inside, r := g.within(p.Namespace, labels), createdPod(p)
	admitted, err := inside.mutate(r)
	if err != nil {
		t.Fatalf("%v\n%+v", err, p)
	}
	before, err := inside.mutate(r.untyped(t))
	if err != nil {
		t.Fatalf("an older API server: %v\n%+v", err, p)
	}
	older := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(before.(*unstructured.Unstructured).Object, older); err != nil {
		t.Fatal(err)
	}
	after := admitted.(*corev1.Pod)
	if !equality.Semantic.DeepEqual(older, after) {
		t.Fatalf("an older API server makes of it\n%+v\nand a new one\n%+v", older, after)
	}
	return after
}

// within is the policy, asked about pods of a namespace with these labels. Every namespace has
// that of its name, too.
func (g gater) within(name string, labels map[string]string) *mutator {
	all := map[string]string{corev1.LabelMetadataName: name}
	maps.Copy(all, labels)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all}}
	inside := *g.mutator
	inside.patchers = nil
	for _, patcher := range g.patchers {
		inside.patchers = append(inside.patchers, inNamespacePatcher{patcher, namespace})
	}
	return &inside
}

// inNamespacePatcher sets the namespace of a patcher, as the API server does.
type inNamespacePatcher struct {
	patch.Patcher
	namespace *corev1.Namespace
}

func (p inNamespacePatcher) Patch(ctx context.Context, r patch.Request, budget int64) (runtime.Object, error) {
	r.Namespace = p.namespace
	return p.Patcher.Patch(ctx, r, budget)
}

// The small world of pods: gates, namespaces and labels that meet by chance.
var (
	gateTypes      = []string{networkGate, "example.com/a", "example.com/b"}
	namespaceNames = []string{"shop", metav1.NamespaceSystem, podrule.OwnNamespace}
	resourceNames  = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, "example.com/gpu", "hugepages-2Mi"}
)

// genPodRules are up to four rules, most of them enforced.
func genPodRules(t *rapid.T) []*v1alpha1.PodReadinessRule {
	var objs []*v1alpha1.PodReadinessRule
	for _, name := range ruleNames[:rapid.IntRange(1, len(ruleNames)).Draw(t, "rules")] {
		objs = append(objs, genPodRule(t, name))
	}
	return objs
}

func genPodRule(t *rapid.T, name string) *v1alpha1.PodReadinessRule {
	options := []podRuleOption{
		withGate(rapid.SampledFrom(gateTypes).Draw(t, "gate")),
		ofNamespaces(genPodSelector(t, append([]string{corev1.LabelMetadataName}, labelKeys...))), ofPods(genPodSelector(t, labelKeys)),
	}
	if rapid.Bool().Draw(t, "holds the start") {
		options = append(options, holdsStart)
	}
	switch rapid.IntRange(0, 2).Draw(t, "deadline") {
	case 1:
		options = append(options, opensAfter(rapid.Int32Range(1, 86400).Draw(t, "seconds")))
	case 2:
		options = append(options, reportsAfter(60))
	}
	rare := map[string]podRuleOption{"deleting": beingDeleted, "invalid": ofPods(matching(labelled("role", "Like", "a")))}
	for _, what := range slices.Sorted(maps.Keys(rare)) {
		if oneIn(t, 10, what) {
			options = append(options, rare[what])
		}
	}
	return podRule(name, options...)
}

// genPodSelector is a selector of these labels, or none.
func genPodSelector(t *rapid.T, keys []string) *v1alpha1.LabelSelector {
	if oneIn(t, 3, "no selector") {
		return nil
	}
	selector := &v1alpha1.LabelSelector{}
	if rapid.Bool().Draw(t, "match labels") {
		key := rapid.SampledFrom(keys).Draw(t, "key")
		selector.MatchLabels = map[string]v1alpha1.LabelValue{key: v1alpha1.LabelValue(rapid.SampledFrom(valuesOf(key)).Draw(t, "value"))}
	}
	if len(selector.MatchLabels) == 0 || oneIn(t, 3, "expressions, too") {
		selector.MatchExpressions = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) v1alpha1.LabelSelectorRequirement {
			key := rapid.SampledFrom(keys).Draw(t, "key")
			operator := rapid.SampledFrom([]string{"In", "NotIn", "Exists", "DoesNotExist"}).Draw(t, "operator")
			if operator == "Exists" || operator == "DoesNotExist" {
				return labelled(key, operator)
			}
			return labelled(key, operator, rapid.SliceOfNDistinct(rapid.SampledFrom(valuesOf(key)), 1, 2, rapid.ID).Draw(t, "values")...)
		}), 1, 2).Draw(t, "expressions")
	}
	return selector
}

func valuesOf(key string) []string {
	if key == corev1.LabelMetadataName {
		return namespaceNames
	}
	return []string{"", "a", "b"}
}

// genPod is a pod of any kind, with lists and maps that are absent or empty, and with much of what
// the policy looks for there already, rightly or not.
func genPod(t *rapid.T) *corev1.Pod {
	p := pod(inNamespace(rapid.SampledFrom(namespaceNames).Draw(t, "namespace")))
	p.Labels, p.Annotations = genLabels(t), genPodNotes(t)
	if !oneIn(t, 3, "no gates") {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{}
		hasGates(rapid.SliceOfN(rapid.SampledFrom(append([]string{foreignGate}, gateTypes...)), 0, 3).Draw(t, "gates")...)(p)
	}
	p.Spec.Containers[0].Resources = genResources(t)
	if rapid.Bool().Draw(t, "second container") {
		container("second", genResources(t))(p)
	}
	usual := map[string]podOption{
		"security context": runsAs(&corev1.PodSecurityContext{}), "user": runsAs(&corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1000)}), "root": runsAs(&corev1.PodSecurityContext{RunAsUser: ptr.To[int64](0)}),
		"init container": initContainer("init"), "sidecar": sidecar("proxy"), "volume": volume("data"), "for linux": runsOn(corev1.Linux), "for linux nodes": forNodes("linux"),
		"empty lists": func(p *corev1.Pod) {
			p.Spec.InitContainers, p.Spec.Volumes = append([]corev1.Container{}, p.Spec.InitContainers...), append([]corev1.Volume{}, p.Spec.Volumes...)
		},
	}
	rare := map[string]podOption{
		"host network": func(p *corev1.Pod) { p.Spec.HostNetwork = true }, "mirror": podNote(corev1.MirrorPodAnnotationKey, "x"),
		"opts out": podLabel(v1alpha1.OptOutLabel, v1alpha1.OptOut), "opts out of nothing": podLabel(v1alpha1.OptOutLabel, "false"),
		"latch": initContainer(v1alpha1.LatchName), "container by its name": container(v1alpha1.LatchName, corev1.ResourceRequirements{}), "volume by its name": volume(v1alpha1.LatchName),
		"for windows": runsOn(corev1.Windows), "for windows nodes": forNodes("windows"),
	}
	sprinkle(t, p, 3, usual)
	sprinkle(t, p, 14, rare)
	return p
}

// sprinkle applies each option to one in about n pods.
func sprinkle(t *rapid.T, p *corev1.Pod, n int, options map[string]podOption) {
	for _, what := range slices.Sorted(maps.Keys(options)) {
		if oneIn(t, n, what) {
			options[what](p)
		}
	}
}

// genPodNotes are annotations of others, and the key of a latch and the note of gates, which anybody may
// have written.
func genPodNotes(t *rapid.T) map[string]string {
	if oneIn(t, 3, "no annotations") {
		return nil
	}
	notes := map[string]string{}
	if rapid.Bool().Draw(t, "annotation") {
		notes["example.com/a"] = "b"
	}
	if oneIn(t, 3, "key") {
		notes[v1alpha1.LatchAnnotation] = "always RuleDeleted"
	}
	if rapid.Bool().Draw(t, "note") {
		notes[v1alpha1.GatesAnnotation] = rapid.SampledFrom([]string{
			"", " ", networkGate, "example.com/a", "example.com/a " + networkGate, "  example.com/b  " + foreignGate + " ", "example.com/ab", "example.com/a,example.com/b",
		}).Draw(t, "noted")
	}
	return notes
}

// genResources are requests and limits of a container; some are equal.
func genResources(t *rapid.T) corev1.ResourceRequirements {
	list := func(what string) corev1.ResourceList {
		list := corev1.ResourceList{}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(resourceNames), 0, 4, rapid.ID).Draw(t, what) {
			list[name] = resource.MustParse(rapid.SampledFrom([]string{"0", "1", "250m", "64Mi"}).Draw(t, string(name)))
		}
		return list
	}
	var r corev1.ResourceRequirements
	switch rapid.IntRange(0, 3).Draw(t, "resources") {
	case 1:
		r.Requests = list("requests")
	case 2:
		r.Requests, r.Limits = list("requests"), list("limits")
	case 3: // as for a Guaranteed pod
		r.Limits = resources("cpu", "1", "memory", "1Gi")
		r.Requests = r.Limits.DeepCopy()
	}
	if oneIn(t, 4, "claims") {
		r.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	}
	return r
}

package admission_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/podrule"
)

// waiting is a pod on node n as its agent finds it: with two gates of rules and two of others, of
// which one is noted, and with conditions PodScheduled, Ready and that of the first gate.
func waiting(options ...podOption) *corev1.Pod {
	base := []podOption{
		podLabel("a", "b"), podNote("a", "b"), podNote(v1alpha1.GatesAnnotation, strings.Join([]string{networkGate, otherGate, "example.com/absent", "ContainersReady"}, " ")),
		hasGates(networkGate, otherGate, foreignGate, "ContainersReady"), onNode("n"),
		withCondition("PodScheduled", True), withCondition("Ready", False), withCondition(networkGate, False),
		func(p *corev1.Pod) {
			p.Status.Phase, p.Status.PodIP = corev1.PodRunning, "10.0.0.7"
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app"}}
		},
	}
	return pod(append(base, options...)...)
}

func onNode(name string) podOption { return func(p *corev1.Pod) { p.Spec.NodeName = name } }

func withCondition(kind string, status corev1.ConditionStatus) podOption {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(kind), Status: status})
	}
}

// nowSays changes the i-th condition.
func changesCondition(i int, change func(*corev1.PodCondition)) podOption {
	return func(p *corev1.Pod) { change(&p.Status.Conditions[i]) }
}

func isTrue(c *corev1.PodCondition) { c.Status = True }

// saysOnly leaves these conditions, in this order.
func saysOnly(keep ...int) podOption {
	return func(p *corev1.Pod) {
		conditions := p.Status.Conditions
		p.Status.Conditions = nil
		for _, i := range keep {
			p.Status.Conditions = append(p.Status.Conditions, conditions[i])
		}
	}
}

// storedAgain is what the API server does to a pod with every write.
func storedAgain(p *corev1.Pod) {
	p.ResourceVersion, p.Generation, p.ManagedFields = "2", 2, []metav1.ManagedFieldsEntry{{Manager: "podgate"}}
}

// byAgent is a change of the pod's status by the agent on node n.
func byAgent(old, p *corev1.Pod) request {
	return updatedPod(old, p).of("status").by(admission.PodgateUser).tokenOf("n")
}

func all(options ...podOption) podOption {
	return func(p *corev1.Pod) {
		for _, option := range options {
			option(p)
		}
	}
}

// podChanges are changes of a waiting pod, and what of it only the kubelet and others may write.
func podChanges() map[string]podChange {
	latch := func(value string) podOption { return podNote(v1alpha1.LatchAnnotation, value) }
	unset := func(key string) podOption { return func(p *corev1.Pod) { delete(p.Annotations, key) } }
	return map[string]podChange{
		"nothing":                             {change: all()},
		"what the API server keeps":           {change: storedAgain},
		"Ready":                               {change: changesCondition(1, isTrue), conditions: "Ready"},
		"the reason of Ready":                 {change: changesCondition(1, func(c *corev1.PodCondition) { c.Reason = "r" }), conditions: "Ready"},
		"the message of Ready":                {change: changesCondition(1, func(c *corev1.PodCondition) { c.Message = "m" }), conditions: "Ready"},
		"the transition of Ready":             {change: changesCondition(1, func(c *corev1.PodCondition) { c.LastTransitionTime = metav1.NewTime(noon) }), conditions: "Ready"},
		"the probe of Ready":                  {change: changesCondition(1, func(c *corev1.PodCondition) { c.LastProbeTime = metav1.NewTime(noon) }), conditions: "Ready"},
		"the generation of Ready":             {change: changesCondition(1, func(c *corev1.PodCondition) { c.ObservedGeneration = 3 }), conditions: "Ready"},
		"a gate renamed to Ready":             {change: changesCondition(2, func(c *corev1.PodCondition) { c.Type, c.Status = "Ready", True }), conditions: "Ready", removed: true},
		"a gate that no rule added":           {change: withCondition(foreignGate, True), conditions: foreignGate},
		"a gate that is noted, and absent":    {change: withCondition("example.com/absent", True), conditions: "example.com/absent"},
		"a gate of Kubernetes that is noted":  {change: withCondition("ContainersReady", True), conditions: "ContainersReady"},
		"PodReadyToStartContainers":           {change: withCondition("PodReadyToStartContainers", True), conditions: "PodReadyToStartContainers"},
		"one whose type looks alike":          {change: withCondition(networkGate+"x", True), conditions: networkGate + "x"},
		"a condition of others removed":       {change: saysOnly(1, 2), conditions: "PodScheduled"},
		"all conditions removed":              {change: saysOnly(), conditions: "PodScheduled, Ready", removed: true},
		"the order of others":                 {change: saysOnly(1, 0, 2), conditions: "others"},
		"the number of others":                {change: saysOnly(0, 1, 1, 2), conditions: "others"},
		"two of others":                       {change: all(changesCondition(0, func(c *corev1.PodCondition) { c.Status = False }), changesCondition(1, isTrue)), conditions: "PodScheduled, Ready"},
		"another annotation":                  {change: podNote("a", "c"), fields: "metadata.annotations"},
		"an annotation added":                 {change: podNote("c", "d"), fields: "metadata.annotations"},
		"an annotation removed":               {change: unset("a"), fields: "metadata.annotations"},
		"the note of the gates":               {change: podNote(v1alpha1.GatesAnnotation, networkGate+" Ready"), fields: "metadata.annotations"},
		"an annotation that looks alike":      {change: podNote(v1alpha1.LatchAnnotation+"x", "always Mine"), fields: "metadata.annotations"},
		"a label":                             {change: podLabel("a", "c"), fields: "metadata.labels"},
		"a finalizer":                         {change: func(p *corev1.Pod) { p.Finalizers = []string{"example.com/f"} }, fields: "metadata.finalizers"},
		"an owner":                            {change: func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Name: "o"}} }, fields: "metadata.ownerReferences"},
		"an image, were it not dropped":       {change: func(p *corev1.Pod) { p.Spec.Containers[0].Image = "mine" }, fields: "spec"},
		"a readiness gate, likewise":          {change: hasGates("Ready"), fields: "spec"},
		"the phase":                           {change: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, fields: "status.phase"},
		"the address":                         {change: func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.8" }, fields: "status.podIP"},
		"whether a container is ready":        {change: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Ready = true }, fields: "status.containerStatuses"},
		"a label and the phase":               {change: all(podLabel("c", "d"), func(p *corev1.Pod) { p.Status.Phase = "" }), fields: "metadata.labels, status.phase"},
		"the latch and another annotation":    {change: all(latch("always RuleDeleted"), podNote("a", "c")), fields: "metadata.annotations"},
		"a gate, a condition and the address": {change: all(opened(v1alpha1.ReasonRuleDeleted), changesCondition(1, isTrue), func(p *corev1.Pod) { p.Status.PodIP = "" }), conditions: "Ready", fields: "status.podIP"},
	}
}

// podChange is a change of a waiting pod.
type podChange struct {
	change     podOption
	conditions string // that may not be changed
	fields     string // that may not be changed
	removed    bool   // the condition of a gate goes
}

// opened opens the first gate for this reason.
func opened(reason string) podOption {
	return changesCondition(2, func(c *corev1.PodCondition) { c.Status, c.Reason = True, reason })
}

// refusal is the message of a policy about gates.
func (c podChange) refusal(who string) (conditions, fields []string) {
	if c.conditions != "" {
		conditions = []string{who + " may write the conditions that are gates of rules (" + networkGate + ", " + otherGate + "), and not add, change, move or remove " + c.conditions}
	}
	if c.fields != "" {
		fields = []string{who + " may change gates and the annotation " + v1alpha1.LatchAnnotation + " of a pod, and not " + c.fields + " (including changes by another policy or webhook in the same request)"}
	}
	return conditions, fields
}

func TestAnAgentMayWriteGatesAndTheLatchOnly(t *testing.T) {
	full := corev1.PodCondition{
		Type: networkGate, Status: True, Reason: v1alpha1.ReasonAllReady, Message: "a message", ObservedGeneration: 2,
		LastTransitionTime: metav1.NewTime(noon), LastProbeTime: metav1.NewTime(noon),
	}
	cases := podChanges()
	for name, change := range map[string]podOption{
		"a gate opened":             changesCondition(2, isTrue),
		"all of its condition":      changesCondition(2, func(c *corev1.PodCondition) { *c = full }),
		"a gate that is unknown":    changesCondition(2, func(c *corev1.PodCondition) { c.Status = Unknown }),
		"the other gate opened":     withCondition(otherGate, True),
		"the other gate closed":     withCondition(otherGate, False),
		"both":                      all(changesCondition(2, isTrue), withCondition(otherGate, True)),
		"a gate's condition gone":   saysOnly(0, 1),
		"where it stands":           saysOnly(2, 0, 1),
		"the latch opened":          podNote(v1alpha1.LatchAnnotation, "open 10.0.0.7 boot 2026-11-16T10:00:00Z"),
		"the latch closed":          podNote(v1alpha1.LatchAnnotation, "closed - boot -"),
		"a gate and the latch":      all(changesCondition(2, isTrue), podNote(v1alpha1.LatchAnnotation, "open 10.0.0.7 boot 2026-11-16T10:00:00Z")),
		"with what the server does": all(changesCondition(2, isTrue), storedAgain),
	} {
		cases[name] = podChange{change: change}
	}
	v := newValidator(t, admission.Podgate().Spec)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			conditions, fields := c.refusal("an agent")
			wantEqual(t, "refused", v.refuses(t, byAgent(waiting(), waiting(c.change))), append(conditions, fields...))
			for _, other := range []string{"system:node:n", "system:serviceaccount:other:" + admission.PodgateAccount, admission.ManagerUser, ""} {
				wantEqual(t, "refused to "+other, v.refuses(t, byAgent(waiting(), waiting(c.change)).by(other)), nil)
			}
		})
	}
}

func TestAnAgentMayWriteAPodThatHasNothingYet(t *testing.T) {
	v := newValidator(t, admission.Podgate().Spec)
	bare := pod(onNode("n"), hasGates(networkGate)) // the well-known gate needs no note
	open := pod(onNode("n"), hasGates(networkGate), withCondition(networkGate, True), podNote(v1alpha1.LatchAnnotation, "open 10.0.0.7 boot -"))
	for _, r := range []request{byAgent(bare, open), byAgent(open, bare), byAgent(bare, bare)} {
		wantEqual(t, "refused", v.refuses(t, r), nil)
	}
	without := func(options ...podOption) *corev1.Pod { return pod(append(options, onNode("n"))...) }
	wantEqual(t, "refused on a pod without gates", v.refuses(t, byAgent(without(), without(withCondition(networkGate, True)))),
		[]string{"an agent may write the conditions that are gates of rules (), and not add, change, move or remove " + networkGate})
}

func TestEveryOtherFieldOfAPodIsProtectedFromAgents(t *testing.T) {
	wantPodProtected(t, newValidator(t, admission.Podgate().Spec), byAgent)
}

// wantPodProtected checks that the policy refuses to add or to remove any field of a pod's metadata
// and status that is not free. They come from the type: one that a later version of the API adds must
// not be forgotten.
func wantPodProtected(t *testing.T, v validator, change func(old, p *corev1.Pod) request) {
	t.Helper()
	free := append([]string{"ObjectMeta.Annotations", "Status.Conditions"}, kept...)
	full := waiting()
	for _, field := range podFields(full) {
		fill(field)
	}
	full.ManagedFields = nil // must hold JSON
	for path := range podFields(full) {
		if slices.Contains(free, path) {
			continue
		}
		lacking := full.DeepCopy()
		podFields(lacking)[path].SetZero()
		for _, r := range []request{change(full, lacking), change(lacking, full)} {
			if got := v.refuses(t, r); len(got) == 0 {
				t.Errorf("%s is not protected", path)
			}
		}
	}
}

// podFields are the fields of a pod's metadata and status.
func podFields(p *corev1.Pod) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	for name, part := range map[string]reflect.Value{"ObjectMeta": reflect.ValueOf(&p.ObjectMeta).Elem(), "Status": reflect.ValueOf(&p.Status).Elem()} {
		for i := range part.NumField() {
			fields[name+"."+part.Type().Field(i).Name] = part.Field(i)
		}
	}
	return fields
}

func TestAnAgentMayWritePodsOnItsOwnNodeOnly(t *testing.T) {
	v := newValidator(t, admission.Podgate().Spec)
	here, open := waiting(), waiting(changesCondition(2, isTrue))
	elsewhere := func(node string) string {
		return "this agent may write pods on its own node, " + node + ", and not on "
	}
	certificate := byAgent(here, open)
	certificate.user.Extra = nil
	for name, c := range map[string]struct {
		request request
		want    []string
	}{
		"of a pod on the node":         {request: byAgent(here, open)},
		"of a pod elsewhere":           {byAgent(here, open).tokenOf("m"), []string{elsewhere("m") + "n"}},
		"that names another also":      {byAgent(here, open).tokenOf("m", "n"), []string{elsewhere("m") + "n"}},
		"for a pod that has no node":   {byAgent(waiting(onNode("")), waiting(onNode(""), changesCondition(2, isTrue))), []string{elsewhere("n") + "none"}},
		"of no pod":                    {byAgent(here, open).tokenOf(), []string{noNode}},
		"of a node without a name":     {byAgent(here, open).tokenOf(""), []string{noNode}},
		"of no pod, for one like that": {byAgent(waiting(onNode("")), waiting(onNode(""))).tokenOf(), []string{noNode}},
		"that is a certificate":        {certificate, []string{noNode}},
		"that says that the pod moved": {byAgent(waiting(onNode("m")), waiting(onNode("n"))), []string{
			elsewhere("n") + "m", "an agent may change gates and the annotation " + v1alpha1.LatchAnnotation + " of a pod, and not spec (including changes by another policy or webhook in the same request)",
		}},
	} {
		wantEqual(t, "with a token "+name, v.refuses(t, c.request), c.want)
		wantEqual(t, "others with a token "+name, v.refuses(t, c.request.by("system:serviceaccount:kube-system:other")), nil)
	}
}

// otherRequests are all that can be done to pods but writing their status.
func otherRequests() map[string]request {
	evicted, bound := createdPod(pod()).of("eviction"), createdPod(pod()).of("binding")
	evicted.object, bound.object = &policyv1.Eviction{}, &corev1.Binding{}
	return map[string]request{
		"create": createdPod(waiting()), "delete": removedPod(waiting()), "evict": evicted, "bind": bound, "exec": connectedPod(),
		"update": updatedPod(waiting(), waiting(changesCondition(2, isTrue))), "debug": updatedPod(waiting(), waiting()).of("ephemeralcontainers"), "resize": updatedPod(waiting(), waiting()).of("resize"),
	}
}

func TestAnAgentMayDoNothingElseToPods(t *testing.T) {
	const only = "an agent may patch or update pods/status, and do nothing else to pods"
	v := newValidator(t, admission.Podgate().Spec)
	for name, r := range otherRequests() {
		t.Run(name, func(t *testing.T) {
			r := r.by(admission.PodgateUser).tokenOf("n")
			wantEqual(t, "refused", v.refuses(t, r), []string{only})
			wantEqual(t, "refused without a node", v.refuses(t, r.tokenOf()), []string{noNode, only})
			wantEqual(t, "refused to others", v.refuses(t, r.by("system:node:n")), nil)
		})
	}
}

// ofLease is a request of the agent on node n for a lease.
func ofLease(operation apiadmission.Operation, namespace string) request {
	lease := &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
	r := request{
		kind: coordinationv1.SchemeGroupVersion.WithKind("Lease"), resource: "leases", namespace: namespace, operation: operation,
		user: user.DefaultInfo{Name: admission.PodgateUser},
	}
	if operation != apiadmission.Delete {
		r.object = lease
	}
	if operation != apiadmission.Create {
		r.old = lease
	}
	return r.tokenOf("n")
}

func TestAnAgentMayWriteItsOwnLeaseOnly(t *testing.T) {
	ours := admission.ManagerNamespace
	not := func(what string) []string {
		return []string{"an agent may create and update its own lease, podgate-n in " + ours + ", and not " + what}
	}
	cases := map[string]struct {
		name    string
		request request
		want    []string
	}{
		"creating it":                  {"podgate-n", ofLease(apiadmission.Create, ours), nil},
		"renewing it":                  {"podgate-n", ofLease(apiadmission.Update, ours), nil},
		"deleting it":                  {"podgate-n", ofLease(apiadmission.Delete, ours), not("delete podgate-n in " + ours)},
		"creating one in another":      {"podgate-n", ofLease(apiadmission.Create, "kube-node-lease"), not("create podgate-n in kube-node-lease")},
		"renewing that of another":     {"podgate-m", ofLease(apiadmission.Update, ours), not("update podgate-m in " + ours)},
		"one whose name looks alike":   {"podgate-n2", ofLease(apiadmission.Create, ours), not("create podgate-n2 in " + ours)},
		"that of the manager's leader": {"readygate-manager", ofLease(apiadmission.Update, ours), not("update readygate-manager in " + ours)},
		"the kubelet's":                {"n", ofLease(apiadmission.Update, "kube-node-lease"), not("update n in kube-node-lease")},
		"one without a name":           {"", ofLease(apiadmission.Create, ours), not("create  in " + ours)},
		"all":                          {"", ofLease(apiadmission.Delete, ours), not("delete  in " + ours)},
		"with a token of no node":      {"podgate-", ofLease(apiadmission.Update, ours).tokenOf(), []string{noNode}},
	}
	v := newValidator(t, admission.Podgate().Spec)
	for name, c := range cases {
		wantEqual(t, name, v.about(c.name).refuses(t, c.request), c.want)
		wantEqual(t, name+", to others", v.about(c.name).refuses(t, c.request.by("system:node:n")), nil)
	}
}

// about is the policy, asked about an object of this name. Else requests are about n.
func (v validator) about(name string) validator { return validator{renaming{v.Validator, name}} }

type renaming struct {
	validating.Validator
	name string
}

func (r renaming) Validate(ctx context.Context, gvr schema.GroupVersionResource, attributes *apiadmission.VersionedAttributes, params runtime.Object,
	namespace *corev1.Namespace, budget int64, authz authorizer.UnconditionalAuthorizer,
) validating.ValidateResult {
	attributes.Attributes = renamed{attributes.Attributes, r.name}
	return r.Validator.Validate(ctx, gvr, attributes, params, namespace, budget, authz)
}

// renamed is a request about an object of another name.
type renamed struct {
	apiadmission.Attributes
	name string
}

func (r renamed) GetName() string { return r.name }

// All that the core decides of pods on its node, whatever state they are in, the agent may write.
func TestTheDecisionsOfAnAgentAreNeverRefused(t *testing.T) {
	v := newValidator(t, admission.Podgate().Spec)
	rapid.Check(t, func(t *rapid.T) {
		rules := podrule.NewRules(genPodRules(t))
		for range 20 {
			s := genSubject(t)
			decision := podrule.Decide(rules, s, func(podrule.Probe) (podrule.Answer, bool) { return podrule.Answer{}, false }, noon)
			wantEqual(t, "refused", v.refuses(t, byAgent(s.Pod, patched(s.Pod, decision.Patch))), nil)
		}
	})
}

// patched is the pod with what was decided.
func patched(p *corev1.Pod, patch *podrule.Patch) *corev1.Pod {
	after := p.DeepCopy()
	if patch == nil {
		return after
	}
	for _, c := range patch.Conditions {
		if i := slices.IndexFunc(after.Status.Conditions, func(is corev1.PodCondition) bool { return is.Type == c.Type }); i >= 0 {
			after.Status.Conditions[i] = c
		} else {
			after.Status.Conditions = append(after.Status.Conditions, c)
		}
	}
	if patch.Key != "" {
		podNote(v1alpha1.LatchAnnotation, patch.Key)(after)
	}
	return after
}

// genSubject is a pod on node n, with conditions and keys of now and of before.
func genSubject(t *rapid.T) *podrule.Subject {
	p := genPod(t)
	p.UID, p.Spec.NodeName, p.Status.PodIP = "u1", "n", rapid.SampledFrom([]string{"", "10.0.0.7"}).Draw(t, "address")
	for _, kind := range append([]string{string(corev1.PodReadyToStartContainers), string(corev1.PodReady), foreignGate, programmed}, gateTypes...) {
		if oneIn(t, 3, "no "+kind) {
			continue
		}
		withCondition(kind, rapid.SampledFrom([]corev1.ConditionStatus{True, False}).Draw(t, kind))(p)
		since := noon.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "minutes")) * time.Minute)
		p.Status.Conditions[len(p.Status.Conditions)-1].LastTransitionTime = metav1.NewTime(since)
	}
	if key := rapid.SampledFrom([]string{"", "odd", "always RuleDeleted", "closed - b1 -", "open 10.0.0.7 b1 " + noon.Format(time.RFC3339), "open 10.0.0.6 b0 -"}).Draw(t, "key"); key != "" {
		podNote(v1alpha1.LatchAnnotation, key)(p)
	}
	return &podrule.Subject{Pod: p, Namespace: genLabels(t), Node: podrule.Node{BootID: "b1"}}
}

package admission_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/internal/core/admission"
)

const calicoReady = "projectcalico.org/CalicoReady"

// reporter is the reporter of most cases.
var reporter = admission.Reporter{Namespace: "kube-system", Account: "cni-reporter", Types: []string{calicoReady}}

const reporterUser = "system:serviceaccount:kube-system:cni-reporter"

// tokenOf is the request with a token that is bound to a pod on these nodes: one or none.
func (r request) tokenOf(nodes ...string) request {
	r.user.Extra = map[string][]string{"authentication.kubernetes.io/pod-name": {"p"}}
	if len(nodes) > 0 {
		r.user.Extra["authentication.kubernetes.io/node-name"] = nodes
	}
	return r
}

// reported is a change of the node's status by the reporter on it.
func reported(old, n *corev1.Node) request {
	return updated(old, n, accounts).of("status").by(reporterUser).tokenOf("n")
}

// running is a node as its reporter finds it.
func running(options ...nodeOption) *corev1.Node {
	base := []nodeOption{
		label("a", "b"), annotated("a", "b"), reports("MemoryPressure", False), reports("Ready", True), reports(calicoReady, False),
		func(n *corev1.Node) { n.Status.Images = []corev1.ContainerImage{{Names: []string{"a"}}} },
	}
	return worker(append(base, options...)...)
}

// setCondition changes the i-th condition.
func setCondition(i int, change func(*corev1.NodeCondition)) nodeOption {
	return func(n *corev1.Node) { change(&n.Status.Conditions[i]) }
}

// retain leaves these conditions, in this order.
func retain(keep ...int) nodeOption {
	return func(n *corev1.Node) {
		conditions := n.Status.Conditions
		n.Status.Conditions = nil
		for _, i := range keep {
			n.Status.Conditions = append(n.Status.Conditions, conditions[i])
		}
	}
}

func TestAReporterMayReportItsConditionsOnly(t *testing.T) {
	status := func(c *corev1.NodeCondition) { c.Status = Unknown }
	cases := map[string]struct {
		change     nodeOption
		conditions string // that may not be changed
		fields     string // that may not be changed
		twice      bool   // more than one of its own
	}{
		"nothing":                       {change: func(*corev1.Node) {}},
		"what the API server keeps":     {change: written},
		"its condition":                 {change: setCondition(2, status)},
		"all of it":                     {change: setCondition(2, func(c *corev1.NodeCondition) { *c = fullCondition(calicoReady) })},
		"its heartbeat":                 {change: setCondition(2, func(c *corev1.NodeCondition) { c.LastHeartbeatTime = metav1.NewTime(noon) })},
		"removing it":                   {change: retain(0, 1)},
		"where it stands":               {change: retain(2, 0, 1)},
		"a second one of its type":      {change: reports(calicoReady, True), twice: true},
		"adding one":                    {change: reports("Other", True), conditions: "Other"},
		"one whose type looks alike":    {change: reports(calicoReady+"x", True), conditions: calicoReady + "x"},
		"changing one":                  {change: setCondition(1, status), conditions: "Ready"},
		"its reason":                    {change: setCondition(1, func(c *corev1.NodeCondition) { c.Reason = "r" }), conditions: "Ready"},
		"its message":                   {change: setCondition(1, func(c *corev1.NodeCondition) { c.Message = "m" }), conditions: "Ready"},
		"its transition":                {change: setCondition(1, func(c *corev1.NodeCondition) { c.LastTransitionTime = metav1.NewTime(noon) }), conditions: "Ready"},
		"the heartbeat of others":       {change: setCondition(0, func(c *corev1.NodeCondition) { c.LastHeartbeatTime = metav1.NewTime(noon) }), conditions: "MemoryPressure"},
		"its own and another":           {change: func(n *corev1.Node) { setCondition(2, status)(n); setCondition(0, status)(n) }, conditions: "MemoryPressure"},
		"two of others":                 {change: func(n *corev1.Node) { setCondition(1, status)(n); setCondition(0, status)(n) }, conditions: "MemoryPressure, Ready"},
		"renaming its own":              {change: setCondition(2, func(c *corev1.NodeCondition) { c.Type = "Ready" }), conditions: "Ready"},
		"renaming another":              {change: setCondition(1, func(c *corev1.NodeCondition) { c.Type = calicoReady }), conditions: "Ready", twice: true},
		"removing another":              {change: retain(1, 2), conditions: "MemoryPressure"},
		"removing all":                  {change: retain(), conditions: "MemoryPressure, Ready"},
		"the order of others":           {change: retain(1, 0, 2), conditions: "others"},
		"the number of others":          {change: retain(0, 1, 1, 2), conditions: "others"},
		"a label":                       {change: label("a", "c"), fields: "metadata.labels"},
		"a label and an image":          {change: func(n *corev1.Node) { label("c", "d")(n); n.Status.Images = nil }, fields: "metadata.labels, status.images"},
		"an annotation":                 {change: annotated("c", "d"), fields: "metadata.annotations"},
		"a finalizer":                   {change: func(n *corev1.Node) { n.Finalizers = []string{"example.com/f"} }, fields: "metadata.finalizers"},
		"an owner":                      {change: func(n *corev1.Node) { n.OwnerReferences = []metav1.OwnerReference{{Name: "o"}} }, fields: "metadata.ownerReferences"},
		"volumes":                       {change: func(n *corev1.Node) { n.Status.VolumesInUse = []corev1.UniqueVolumeName{"v"} }, fields: "status.volumesInUse"},
		"a taint, were it not dropped":  {change: tainted(hold), fields: "spec"},
		"its condition, with much else": {change: func(n *corev1.Node) { setCondition(2, status)(n); n.Status.Phase = "Running" }, fields: "status.phase"},
	}
	v := newValidator(t, reporter.Policy().Spec)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var want []string
			if c.conditions != "" {
				want = append(want, "this reporter may report the conditions "+calicoReady+
					" (the types that its policy names), and not add, change, move or remove "+c.conditions)
			}
			if c.twice {
				want = append(want, "a reporter may report each of its conditions once")
			}
			if c.fields != "" {
				want = append(want, "a reporter may change conditions of its node, and not "+c.fields+" (including changes by another policy or webhook in the same request)")
			}
			wantEqual(t, "refused", v.refuses(t, reported(running(), running(c.change))), want)
			wantEqual(t, "refused to others", v.refuses(t, reported(running(), running(c.change)).by("system:node:n")), nil)
		})
	}
}

func fullCondition(conditionType string) corev1.NodeCondition {
	at := metav1.NewTime(noon.Add(time.Minute))
	return corev1.NodeCondition{
		Type: corev1.NodeConditionType(conditionType), Status: Unknown, LastHeartbeatTime: at, LastTransitionTime: at, Reason: "Reason", Message: "a message",
	}
}

func TestAReporterMayReportOnANodeThatHasNothingYet(t *testing.T) {
	v := newValidator(t, reporter.Policy().Spec)
	ready := node(reports(calicoReady, True))
	for _, r := range []request{reported(node(), ready), reported(ready, node()), reported(node(), node())} {
		wantEqual(t, "refused", v.refuses(t, r), nil)
	}
}

func TestEveryOtherFieldOfANodeIsProtectedFromReporters(t *testing.T) {
	wantProtected(t, newValidator(t, reporter.Policy().Spec), append([]string{"Status.Conditions"}, kept...), reported)
}

const noNode = "the token contains no node name, so the node of the account is not known: use the token that the kubelet mounts into the pod (Kubernetes 1.30 or newer), " +
	"and not one of a Secret or one that is not bound to a pod"

func TestAReporterMayDoNothingElseToNodes(t *testing.T) {
	const only = "a reporter may patch or update nodes/status, and do nothing else to nodes"
	v := newValidator(t, reporter.Policy().Spec)
	for name, r := range map[string]request{
		"create":         created(node()),
		"delete":         removed(node()),
		"connect":        connected(),
		"create a proxy": created(node()).of("proxy"),
		"update":         updated(node(), node(reports(calicoReady, True))),
		"update a part":  updated(node(), node()).of("other"),
	} {
		t.Run(name, func(t *testing.T) {
			r := r.tokenOf("n")
			wantEqual(t, "refused", v.refuses(t, r.by(reporterUser)), []string{only})
			wantEqual(t, "refused without a node", v.refuses(t, r.by(reporterUser).tokenOf()), []string{only, noNode})
			for _, other := range []string{"system:node:n", "system:serviceaccount:other:cni-reporter", "system:serviceaccount:kube-system:cni-reporter2", ""} {
				wantEqual(t, "refused to "+other, v.refuses(t, r.by(other)), nil)
			}
		})
	}
}

func TestAnAccountMayWriteItsOwnNodeOnly(t *testing.T) {
	calico := admission.OwnNode("kube-system", "calico-node")
	for name, v := range map[string]validator{reporterUser: newValidator(t, reporter.Policy().Spec), "system:serviceaccount:kube-system:calico-node": newValidator(t, calico.Spec)} {
		r := reported(running(), running()).by(name)
		for token, c := range map[string]struct {
			request request
			want    []string
		}{
			"of a pod on the node":    {request: r},
			"of a pod elsewhere":      {r.tokenOf("m"), []string{"this account may write the node that its pod runs on, m, and not n"}},
			"of no pod":               {r.tokenOf(), []string{noNode}},
			"of a node without name":  {r.tokenOf(""), []string{noNode}},
			"that names another also": {r.tokenOf("m", "n"), []string{"this account may write the node that its pod runs on, m, and not n"}},
		} {
			wantEqual(t, name+" with a token "+token, v.refuses(t, c.request), c.want)
			wantEqual(t, "others with a token "+token, v.refuses(t, c.request.by("system:serviceaccount:kube-system:other")), nil)
		}
		bare := r
		bare.user.Extra = nil
		wantEqual(t, name+" with a certificate", v.refuses(t, bare), []string{noNode})
	}
}

func TestSharedAccountMayChangeAnythingOnItsOwnNode(t *testing.T) {
	v := newValidator(t, admission.OwnNode("kube-system", "calico-node").Spec)
	changed := running(setCondition(1, func(c *corev1.NodeCondition) { c.Status = False }), label("c", "d"), annotated("e", "f"), retain(1))
	wantEqual(t, "refused", v.refuses(t, reported(running(), changed).by("system:serviceaccount:kube-system:calico-node")), nil)
}

// A policy that fails closed must not fail on a node that is as large as nodes can be.
func TestAReporterMayReportOnTheLargestNode(t *testing.T) {
	large := func(options ...nodeOption) *corev1.Node {
		n := heavyNode()
		for i := range 1000 {
			n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprint("a", i), fmt.Sprint("b", i)}, SizeBytes: int64(i)})
			reports(fmt.Sprint("example.com/", i), False)(n)
		}
		for _, option := range options {
			option(n)
		}
		return n
	}
	for what, v := range map[string]validator{"limited": newValidator(t, reporter.Policy().Spec), "reserved": newValidator(t, reporter.Reserved().Spec)} {
		wantEqual(t, what, v.refuses(t, reported(large(), large(reports(calicoReady, True)))), nil)
	}
	limited := newValidator(t, reporter.Policy().Spec)
	wantEqual(t, "refused", limited.refuses(t, reported(large(), large(retain()))),
		[]string{"this reporter may report the conditions that its policy names, and not add, change, move or remove others"})
}

// Of all lists of conditions, exactly those are refused that differ in what is of others, or
// hold more of its own than it has types.
func TestReporterPoliciesRejectExactlyForeignConditions(t *testing.T) {
	two := admission.Reporter{Namespace: "kube-system", Account: "cni-reporter", Types: []string{"A", "B"}}
	limited, reserved := newValidator(t, two.Policy().Spec), newValidator(t, two.Reserved().Spec)
	rapid.Check(t, func(t *rapid.T) {
		for range 30 {
			old, n := genReports(t), genReports(t)
			own := len(of(n, "A", "B")) // more than one of a type is refused, unless they were there before
			if got, want := limited.refuses(t, reported(old, n)), !slices.Equal(of(old, "C", "D"), of(n, "C", "D")) || own > 2 && own > len(of(old, "A", "B")); (len(got) > 0) != want {
				t.Fatalf("from %v to %v: refused to the reporter %q, want %t", old.Status, n.Status, got, want)
			}
			want := !slices.Equal(of(old, "A"), of(n, "A")) || !slices.Equal(of(old, "B"), of(n, "B"))
			if got := reserved.refuses(t, reported(old, n).by("alice")); (len(got) > 0) != want {
				t.Fatalf("from %v to %v: refused to others %q, want %t", old.Status, n.Status, got, want)
			}
		}
	})
}

// genReports is a node with a few conditions, some of a type that is there already.
func genReports(t *rapid.T) *corev1.Node {
	n := node()
	for range rapid.IntRange(0, 4).Draw(t, "conditions") {
		reports(rapid.SampledFrom([]string{"A", "B", "C", "D"}).Draw(t, "type"), rapid.SampledFrom([]corev1.ConditionStatus{True, False}).Draw(t, "status"))(n)
	}
	return n
}

func of(n *corev1.Node, types ...string) []corev1.NodeCondition {
	return slices.DeleteFunc(slices.Clone(n.Status.Conditions), func(c corev1.NodeCondition) bool { return !slices.Contains(types, string(c.Type)) })
}

func TestUnusualNamesAndTypesAreMatchedExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		odd := rapid.Map(anyText(), func(s string) string { return strings.ToValidUTF8(s, "\ufffd") })
		r := admission.Reporter{Namespace: odd.Draw(t, "namespace"), Account: odd.Draw(t, "account"), Types: rapid.SliceOfN(odd, 0, 3).Draw(t, "types")}
		user := "system:serviceaccount:" + r.Namespace + ":" + r.Account
		limited, own, reserved := newValidator(t, r.Policy().Spec), newValidator(t, admission.OwnNode(r.Namespace, r.Account).Spec), newValidator(t, r.Reserved().Spec)
		for _, conditionType := range append(slices.Clone(r.Types), odd.Draw(t, "other")) {
			isOwn := slices.Contains(r.Types, conditionType)
			change := reported(node(), node(reports(conditionType, True))).by(user)
			wantRefused(t, "reporting", limited.refuses(t, change), !isOwn)
			wantRefused(t, "elsewhere", own.refuses(t, change.tokenOf("m")), true)
			wantRefused(t, "elsewhere to others", own.refuses(t, change.tokenOf("m").by(user+`"`)), false)
			wantRefused(t, "reserved", reserved.refuses(t, change), false)
			wantRefused(t, "reserved to others", reserved.refuses(t, change.by(user+`"`)), isOwn)
		}
	})
}

func wantRefused(t rapid.TB, what string, got []string, want bool) {
	t.Helper()
	if (len(got) > 0) != want {
		t.Errorf("%s: refused %q, want %t", what, got, want)
	}
}

func TestPoliciesOfReportersHaveNames(t *testing.T) {
	long := strings.Repeat("a", 229) + ".-" + strings.Repeat("b", 20)
	names := map[string]bool{}
	for _, r := range []admission.Reporter{reporter, {Namespace: "a", Account: "b.c"}, {Namespace: "a", Account: long}, {Namespace: "a", Account: long + "c"}} {
		for _, name := range []string{r.Policy().Name, r.Reserved().Name, admission.OwnNode(r.Namespace, r.Account).Name} {
			if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 || names[name] {
				t.Errorf("%s: %v", name, errs)
			}
			names[name] = true
		}
	}
	for _, want := range []string{"readygate-reporter-a.b.c", "readygate-reserved-a.b.c", "readygate-own-node-a.b.c"} {
		if !names[want] {
			t.Errorf("no %s", want)
		}
	}
}

package admission_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/latchkey"
	"github.com/readygate/readygate/internal/core/podrule"
)

// gateCase is a pod and what becomes of it as it is created.
type gateCase struct {
	rules     []*v1alpha1.PodReadinessRule // network alone if there are none
	pod       *corev1.Pod
	namespace map[string]string // its labels
	gates     []string
	note      string
	latched   bool
}

func (c gateCase) run(t *testing.T) {
	if c.rules == nil {
		c.rules = podRules(podRule("network"))
	}
	g := newGater(t, c.rules...)
	got := g.admit(t, c.pod, c.namespace)
	wantEqual(t, "gates", gateNames(got), c.gates)
	if note := got.Annotations[v1alpha1.GatesAnnotation]; note != c.note {
		t.Errorf("noted %q, want %q", note, c.note)
	}
	if latched := podrule.HasLatch(got); latched != c.latched {
		t.Errorf("has a latch: %t", latched)
	}
	if again := g.admit(t, got, c.namespace); !equality.Semantic.DeepEqual(again, got) {
		t.Errorf("the policy changes its own work:\n%+v\n%+v", got, again)
	}
}

func TestPodIsCreatedWithTheGatesOfItsRules(t *testing.T) {
	network, holding := []string{networkGate}, podRule("holding", holdsStart)
	other := podRule("other", withGate(otherGate))
	cases := map[string]gateCase{
		"a selected pod has the gate, and a note says who asked for it": {pod: pod(), gates: network, note: networkGate},
		"its other gates stay, and stay first":                          {pod: pod(hasGates(foreignGate)), gates: []string{foreignGate, networkGate}, note: networkGate},
		"its other annotations stay":                                    {pod: pod(podNote("a", "b")), gates: network, note: networkGate},
		"the gate is not put there twice":                               {pod: pod(hasGates(networkGate)), gates: network, note: networkGate},
		"one that is noted and absent is":                               {pod: pod(podNote(v1alpha1.GatesAnnotation, networkGate)), gates: network, note: networkGate},
		"a note that looks alike is another":                            {pod: pod(podNote(v1alpha1.GatesAnnotation, networkGate+"x")), gates: network, note: networkGate + "x " + networkGate},
		"gate and note are left alone":                                  {pod: pod(hasGates(networkGate), podNote(v1alpha1.GatesAnnotation, networkGate)), gates: network, note: networkGate},
		"two rules with one gate put it there once":                     {rules: podRules(podRule("a"), podRule("b")), pod: pod(), gates: network, note: networkGate},
		"two rules with two gates put both there":                       {rules: podRules(podRule("network"), other), pod: pod(), gates: []string{networkGate, otherGate}, note: networkGate + " " + otherGate},
		"of two gates only the one that is absent is put there": {
			rules: podRules(podRule("network"), other), pod: pod(hasGates(otherGate), podNote(v1alpha1.GatesAnnotation, otherGate)),
			gates: []string{otherGate, networkGate}, note: otherGate + " " + networkGate,
		},
		"a rule that holds the start puts the latch there":          {rules: podRules(holding), pod: pod(), gates: network, note: networkGate, latched: true},
		"two of them put one there":                                 {rules: podRules(holding, podRule("other", holdsStart, withGate(otherGate))), pod: pod(), gates: []string{networkGate, otherGate}, note: networkGate + " " + otherGate, latched: true},
		"a pod with the gate and no latch gets the latch":           {rules: podRules(holding), pod: pod(hasGates(networkGate), podNote(v1alpha1.GatesAnnotation, networkGate)), gates: network, note: networkGate, latched: true},
		"a pod that is made by another is no exception":             {pod: pod(func(p *corev1.Pod) { p.Name, p.GenerateName = "", "web-" }), gates: network, note: networkGate},
		"a rule that is being deleted asks for nothing":             {rules: podRules(podRule("network", beingDeleted)), pod: pod()},
		"a rule that is not valid asks for nothing":                 {rules: podRules(podRule("network", ofPods(matching(labelled("a", "Like", "b"))))), pod: pod()},
		"a pod whose lists and maps are empty is as one without":    {rules: podRules(holding), pod: pod(emptied), gates: network, note: networkGate, latched: true},
		"a pod with a container by the latch's name gets no second": {rules: podRules(holding), pod: pod(container(v1alpha1.LatchName, corev1.ResourceRequirements{})), gates: network, note: networkGate},
		"nor one with a volume by its name":                         {rules: podRules(holding), pod: pod(volume(v1alpha1.LatchName)), gates: network, note: networkGate},
		"nor one that has it":                                       {rules: podRules(holding), pod: pod(initContainer(v1alpha1.LatchName)), gates: network, note: networkGate, latched: true},
		"a pod for Windows is left alone: no agent would open it":   {rules: podRules(holding), pod: pod(runsOn(corev1.Windows))},
		"so is one for nodes with Windows":                          {rules: podRules(holding), pod: pod(forNodes("windows"))},
		"that of one for Linux is":                                  {rules: podRules(holding), pod: pod(runsOn(corev1.Linux), forNodes("linux")), gates: network, note: networkGate, latched: true},
	}
	for name, c := range cases {
		t.Run(name, c.run)
	}
}

// emptied has lists and maps that are there and empty.
func emptied(p *corev1.Pod) {
	p.Labels, p.Annotations = map[string]string{}, map[string]string{}
	p.Spec.ReadinessGates, p.Spec.InitContainers, p.Spec.Volumes = []corev1.PodReadinessGate{}, []corev1.Container{}, []corev1.Volume{}
}

func TestOnlyPodsThatRulesSelectAreGated(t *testing.T) {
	network := []string{networkGate}
	named := func(names ...string) []*v1alpha1.PodReadinessRule {
		return podRules(podRule("network", ofNamespaces(matching(labelled(corev1.LabelMetadataName, "In", names...)))))
	}
	on := podRules(podRule("network", ofNamespaces(exactly("network-gate", "on"))))
	web := podRules(podRule("network", ofPods(exactly("app", "web"))))
	both := podRules(podRule("network", ofNamespaces(exactly("network-gate", "on")), ofPods(matching(labelled("app", "NotIn", "db")))))
	cases := map[string]gateCase{
		"one in its node's network is not":           {pod: pod(func(p *corev1.Pod) { p.Spec.HostNetwork = true })},
		"one of the kubelet's own is not":            {pod: pod(podNote(corev1.MirrorPodAnnotationKey, "x"))},
		"one that opts out is not":                   {pod: pod(podLabel(v1alpha1.OptOutLabel, v1alpha1.OptOut))},
		"one that opts out of nothing is":            {pod: pod(podLabel(v1alpha1.OptOutLabel, "false")), gates: network, note: networkGate},
		"one of kube-system is not":                  {pod: pod(inNamespace(metav1.NamespaceSystem))},
		"one of our own namespace is not":            {pod: pod(inNamespace(admission.ManagerNamespace))},
		"even if the labels of kube-system match":    {rules: on, pod: pod(inNamespace(metav1.NamespaceSystem)), namespace: map[string]string{"network-gate": "on"}},
		"one of kube-system is if a rule names it":   {rules: named(metav1.NamespaceSystem), pod: pod(inNamespace(metav1.NamespaceSystem)), gates: network, note: networkGate},
		"which is not one of our own, then":          {rules: named(metav1.NamespaceSystem), pod: pod(inNamespace(admission.ManagerNamespace))},
		"nor one of others":                          {rules: named(metav1.NamespaceSystem), pod: pod()},
		"one of a namespace that is named is":        {rules: named("shop", "bank"), pod: pod(), gates: network, note: networkGate},
		"one whose namespace has the label is":       {rules: on, pod: pod(), namespace: map[string]string{"network-gate": "on"}, gates: network, note: networkGate},
		"one whose namespace has another value not":  {rules: on, pod: pod(), namespace: map[string]string{"network-gate": "off"}},
		"one that has the namespace's label not":     {rules: on, pod: pod(podLabel("network-gate", "on"))},
		"one with the label is":                      {rules: web, pod: pod(podLabel("app", "web")), gates: network, note: networkGate},
		"one with another value is not":              {rules: web, pod: pod(podLabel("app", "db"))},
		"one whose namespace has the pod's label no": {rules: web, pod: pod(), namespace: map[string]string{"app": "web"}},
		"both selectors must match":                  {rules: both, pod: pod(podLabel("app", "web")), namespace: map[string]string{"network-gate": "on"}, gates: network, note: networkGate},
		"not only that of the namespace":             {rules: both, pod: pod(podLabel("app", "db")), namespace: map[string]string{"network-gate": "on"}},
		"nor only that of the pod":                   {rules: both, pod: pod(podLabel("app", "web"))},
	}
	for name, c := range cases {
		t.Run(name, c.run)
	}
}

// podsPerBook are the pods that one policy is asked about: compiling is what takes time.
const podsPerBook = 30

// A pod that is created gets the gates, the note and the latch exactly if the core decides that a
// rule selects it, and nothing else of it changes. Asked again, the policy changes nothing.
func TestThePolicyGatesPodsAsTheCoreSelectsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objs := genPodRules(t)
		g, rules := newGater(t, objs...), podrule.NewRules(objs)
		for range podsPerBook {
			before, labels := genPod(t), genLabels(t)
			after := g.admit(t, before, labels)
			want := gatedBy(rules, before, labels)
			want.TypeMeta = after.TypeMeta
			if !equality.Semantic.DeepEqual(after, want) {
				t.Fatalf("of %+v\nthe policy made %+v\n      instead of %+v", before, after, want)
			}
			if again := g.admit(t, after, labels); !equality.Semantic.DeepEqual(again, after) {
				t.Fatalf("made %+v\nand then %+v", after, again)
			}
			if got, want := classOf(after), classOf(before); got != want {
				t.Fatalf("%+v\nhas class %s, had %s", after, got, want)
			}
		}
	})
}

// gatedBy is the pod as the rules require.
func gatedBy(rules []*podrule.Rule, p *corev1.Pod, labels map[string]string) *corev1.Pod {
	want := p.DeepCopy()
	noted := slices.DeleteFunc(strings.Split(p.Annotations[v1alpha1.GatesAnnotation], " "), func(word string) bool { return word == "" })
	before, holding := len(noted), []*podrule.Rule(nil)
	for _, rule := range rules {
		if !rule.Active() || !rule.Selects(p, labels) {
			continue
		}
		if !slices.Contains(gateNames(want), rule.Gate) {
			hasGates(rule.Gate)(want)
		}
		if !slices.Contains(noted, rule.Gate) {
			noted = append(noted, rule.Gate)
		}
		if rule.StartHold {
			holding = append(holding, rule)
		}
	}
	if len(noted) > before {
		podNote(v1alpha1.GatesAnnotation, strings.Join(noted, " "))(want)
	}
	if len(holding) > 0 {
		delete(want.Annotations, v1alpha1.LatchAnnotation)
	}
	if len(holding) > 0 && mayHaveLatch(p) {
		want.Spec.Volumes = append(want.Spec.Volumes, latchVolume())
		want.Spec.InitContainers = slices.Insert(want.Spec.InitContainers, 0, latchOf(p, deadlineOf(holding)))
	}
	return want
}

// mayHaveLatch reports whether the pod has no latch, nothing with its name, and is not for Windows.
func mayHaveLatch(p *corev1.Pod) bool {
	names := slices.Concat(containerNames(p.Spec.InitContainers), containerNames(p.Spec.Containers))
	for _, v := range p.Spec.Volumes {
		names = append(names, v.Name)
	}
	return !slices.Contains(names, v1alpha1.LatchName) && (p.Spec.OS == nil || p.Spec.OS.Name != corev1.Windows) && p.Spec.NodeSelector[corev1.LabelOSStable] != "windows"
}

// deadlineOf is when the last of the rules opens, if all of them do.
func deadlineOf(rules []*podrule.Rule) string {
	last := time.Duration(0)
	for _, rule := range rules {
		if !rule.OpenLate {
			return ""
		}
		last = max(last, rule.Deadline)
	}
	return strconv.Itoa(int(last.Seconds()))
}

// latchOf is the latch of a pod, as it is meant.
func latchOf(p *corev1.Pod, deadline string) corev1.Container {
	share := func(all corev1.ResourceList) corev1.ResourceList {
		some := corev1.ResourceList{}
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
			if quantity, ok := all[name]; ok {
				some[name] = quantity
			}
		}
		return some
	}
	first := p.Spec.Containers[0].Resources
	var user *int64
	if s := p.Spec.SecurityContext; s != nil && s.RunAsUser != nil && *s.RunAsUser == 0 {
		user = ptr.To[int64](65532)
	}
	return corev1.Container{
		Name: v1alpha1.LatchName, Image: podLatch.Image, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"/readygate-latch"},
		Env: []corev1.EnvVar{
			{Name: latchkey.PodIP, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}}},
			{Name: latchkey.PodName, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
			{Name: latchkey.PodNamespace, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}},
			{Name: latchkey.Deadline, Value: deadline},
		},
		Resources: corev1.ResourceRequirements{Requests: share(first.Requests), Limits: share(first.Limits)},
		VolumeMounts: []corev1.VolumeMount{
			{Name: v1alpha1.LatchName, MountPath: latchkey.Volume, ReadOnly: true},
			{Name: v1alpha1.LatchName, MountPath: tokenPath, ReadOnly: true},
		},
		SecurityContext: &corev1.SecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: user, RunAsGroup: user,
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}

// tokenPath is where the API server mounts the token of a service account into every container that
// has nothing there.
const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// latchVolume is where the latch finds its key.
func latchVolume() corev1.Volume {
	return corev1.Volume{Name: v1alpha1.LatchName, VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
		Items: []corev1.DownwardAPIVolumeFile{{
			Path: latchkey.File, FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + v1alpha1.LatchAnnotation + "']"},
		}},
	}}}
}

// classOf is the QoS class that the API server gives the pod: that of its containers, if all have
// the same.
func classOf(p *corev1.Pod) corev1.PodQOSClass {
	classes := sets.New[corev1.PodQOSClass]()
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		kinds := sets.New[corev1.PodQOSClass]()
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			asks, limit := c.Resources.Requests[name], c.Resources.Limits[name]
			switch {
			case asks.Cmp(limit) != 0:
				kinds.Insert(corev1.PodQOSBurstable)
			case asks.IsZero():
				kinds.Insert(corev1.PodQOSBestEffort)
			default:
				kinds.Insert(corev1.PodQOSGuaranteed)
			}
		}
		classes.Insert(theOneOf(kinds))
	}
	return theOneOf(classes)
}

func theOneOf(classes sets.Set[corev1.PodQOSClass]) corev1.PodQOSClass {
	if classes.Len() == 1 {
		return classes.UnsortedList()[0]
	}
	return corev1.PodQOSBurstable
}

// held is the pod as a rule with startHold creates it.
func held(t *testing.T, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	after := newGater(t, podRule("network", holdsStart)).admit(t, p, nil)
	if !podrule.HasLatch(after) {
		t.Fatal("the pod has no latch")
	}
	return after
}

func TestLatchIsTheFirstInitContainer(t *testing.T) {
	after := held(t, pod(sidecar("proxy"), initContainer("migrate"), volume("data")))
	wantEqual(t, "init containers", containerNames(after.Spec.InitContainers), []string{v1alpha1.LatchName, "proxy", "migrate"})
	wantEqual(t, "containers", containerNames(after.Spec.Containers), []string{"app"})
	if first := after.Spec.InitContainers[0]; first.RestartPolicy != nil {
		t.Errorf("the latch is restarted: %s", *first.RestartPolicy)
	}
	if len(after.Spec.Volumes) != 2 || after.Spec.Volumes[0].Name != "data" || !equality.Semantic.DeepEqual(after.Spec.Volumes[1], latchVolume()) {
		t.Errorf("volumes: %+v", after.Spec.Volumes)
	}
}

func TestLatchRequestsNoMoreResourcesThanTheFirstContainer(t *testing.T) {
	cases := map[string]struct{ has, want corev1.ResourceRequirements }{
		"nothing": {},
		"requests": {
			has:  corev1.ResourceRequirements{Requests: resources("cpu", "100m", "memory", "64Mi")},
			want: corev1.ResourceRequirements{Requests: resources("cpu", "100m", "memory", "64Mi")},
		},
		"limits": {
			has:  corev1.ResourceRequirements{Limits: resources("memory", "64Mi", "ephemeral-storage", "1Gi")},
			want: corev1.ResourceRequirements{Limits: resources("memory", "64Mi", "ephemeral-storage", "1Gi")},
		},
		"devices and huge pages, which it does not take": {
			has: corev1.ResourceRequirements{
				Requests: resources("cpu", "1", "example.com/gpu", "1", "hugepages-2Mi", "2Mi"), Limits: resources("example.com/gpu", "1", "hugepages-2Mi", "2Mi"),
			},
			want: corev1.ResourceRequirements{Requests: resources("cpu", "1")},
		},
		"claims, which it does not take": {
			has:  corev1.ResourceRequirements{Requests: resources("cpu", "1"), Claims: []corev1.ResourceClaim{{Name: "gpu"}}},
			want: corev1.ResourceRequirements{Requests: resources("cpu", "1")},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			big := corev1.ResourceRequirements{Requests: resources("cpu", "8", "memory", "8Gi")}
			got := held(t, pod(firstTakes(c.has), container("second", big))).Spec.InitContainers[0].Resources
			if !equality.Semantic.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestTheLatchKeepsTheQoSClass(t *testing.T) {
	all := resources("cpu", "1", "memory", "1Gi")
	guaranteed := corev1.ResourceRequirements{Requests: all, Limits: all}
	burstable := corev1.ResourceRequirements{Requests: all}
	none := corev1.ResourceRequirements{}
	gpu := corev1.ResourceRequirements{Requests: resources("example.com/gpu", "1"), Limits: resources("example.com/gpu", "1")}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want corev1.PodQOSClass
	}{
		"BestEffort":                       {pod(firstTakes(none), container("second", none)), corev1.PodQOSBestEffort},
		"BestEffort with a device":         {pod(firstTakes(gpu)), corev1.PodQOSBestEffort},
		"Burstable":                        {pod(firstTakes(burstable)), corev1.PodQOSBurstable},
		"Burstable by its second":          {pod(firstTakes(none), container("second", burstable)), corev1.PodQOSBurstable},
		"Burstable by what differs":        {pod(firstTakes(guaranteed), container("second", none)), corev1.PodQOSBurstable},
		"Burstable, the other way round":   {pod(firstTakes(none), container("second", guaranteed)), corev1.PodQOSBurstable},
		"Guaranteed":                       {pod(firstTakes(guaranteed), container("second", guaranteed)), corev1.PodQOSGuaranteed},
		"Burstable by its init containers": {pod(initContainer("init"), firstTakes(guaranteed)), corev1.PodQOSBurstable},
	} {
		if got := classOf(c.pod); got != c.want {
			t.Errorf("%s: the test takes it for %s", name, got)
		}
		if got := classOf(held(t, c.pod)); got != c.want {
			t.Errorf("%s: with a latch it is %s", name, got)
		}
	}
}

// What the Pod Security Standards ask at the level restricted, of a container and of its volumes.
func TestTheLatchPassesTheRestrictedLevel(t *testing.T) {
	after := held(t, pod())
	first, source := after.Spec.InitContainers[0], after.Spec.Volumes[0].VolumeSource
	is := ptr.Deref(first.SecurityContext, corev1.SecurityContext{})
	for what, ok := range map[string]bool{
		"runAsNonRoot must be true":                    ptr.Deref(is.RunAsNonRoot, false),
		"runAsUser must not be 0":                      ptr.Deref(is.RunAsUser, 1) != 0,
		"allowPrivilegeEscalation must be false":       !ptr.Deref(is.AllowPrivilegeEscalation, true),
		"privileged must be false":                     !ptr.Deref(is.Privileged, false),
		"capabilities must drop ALL, and add none":     equality.Semantic.DeepEqual(is.Capabilities, &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}),
		"seccompProfile must be RuntimeDefault":        equality.Semantic.DeepEqual(is.SeccompProfile, &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}),
		"procMount must be the default":                is.ProcMount == nil,
		"seLinuxOptions must be those of the pod":      is.SELinuxOptions == nil,
		"appArmorProfile must be that of the pod":      is.AppArmorProfile == nil,
		"windowsOptions must be absent":                is.WindowsOptions == nil,
		"there must be no port of the node":            len(first.Ports) == 0,
		"there must be no hook or probe to a host":     first.Lifecycle == nil,
		"the volume must be of the downward API alone": equality.Semantic.DeepEqual(source, corev1.VolumeSource{DownwardAPI: source.DownwardAPI}),
	} {
		if !ok {
			t.Errorf("%s: %+v", what, first)
		}
	}
}

// Clusters that ask for users of a range refuse any other, so none is named. But as root the latch would
// not start.
func TestTheLatchRunsAsThePodDoesUnlessThatIsRoot(t *testing.T) {
	for name, c := range map[string]struct {
		pod  *corev1.PodSecurityContext
		want *int64
	}{
		"a pod that says nothing":          {nil, nil},
		"a pod that names no user":         {&corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), FSGroup: ptr.To[int64](2000)}, nil},
		"a pod with a user":                {&corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1000)}, nil},
		"a pod whose group is root's":      {&corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1000), RunAsGroup: ptr.To[int64](0)}, nil},
		"a pod that runs as root":          {&corev1.PodSecurityContext{RunAsUser: ptr.To[int64](0)}, ptr.To[int64](65532)},
		"a pod with the user of the image": {&corev1.PodSecurityContext{RunAsUser: ptr.To[int64](65532)}, nil},
	} {
		is := held(t, pod(runsAs(c.pod))).Spec.InitContainers[0].SecurityContext
		if !equality.Semantic.DeepEqual(is.RunAsUser, c.want) || !equality.Semantic.DeepEqual(is.RunAsGroup, c.want) || !ptr.Deref(is.RunAsNonRoot, false) {
			t.Errorf("%s: the latch has %+v", name, is)
		}
	}
}

// A pod that was copied, or restored from a backup, brings the key of another one.
func TestLatchKeyOfANewPodIsRemoved(t *testing.T) {
	key, other := podNote(v1alpha1.LatchAnnotation, "always RuleDeleted"), podNote("example.com/a", "b")
	noted := podNote(v1alpha1.GatesAnnotation, networkGate)
	holding, plain := podRule("holding", holdsStart), podRule("plain")
	for name, c := range map[string]struct {
		rule *v1alpha1.PodReadinessRule
		pod  *corev1.Pod
		kept bool
	}{
		"by a rule that holds its start":          {rule: holding, pod: pod(key)},
		"another annotation stays":                {rule: holding, pod: pod(key, other)},
		"a pod with everything but the key":       {rule: holding, pod: pod(key, hasGates(networkGate), noted, initContainer(v1alpha1.LatchName), volume(v1alpha1.LatchName))},
		"an empty one":                            {rule: holding, pod: pod(podNote(v1alpha1.LatchAnnotation, ""))},
		"not where nothing waits for it":          {rule: plain, pod: pod(key), kept: true},
		"not where no rule selects the pod":       {rule: podRule("others", holdsStart, ofPods(exactly("app", "db"))), pod: pod(key), kept: true},
		"not where no rule selects the namespace": {rule: podRule("others", holdsStart, ofNamespaces(exactly("a", "b"))), pod: pod(key), kept: true},
		"not if the pod opts out":                 {rule: holding, pod: pod(key, podLabel(v1alpha1.OptOutLabel, v1alpha1.OptOut)), kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			g, before := newGater(t, c.rule), c.pod.DeepCopy()
			after := g.admit(t, c.pod, nil)
			if _, has := after.Annotations[v1alpha1.LatchAnnotation]; has != c.kept {
				t.Errorf("annotations are %v", after.Annotations)
			}
			if got, want := after.Annotations["example.com/a"], before.Annotations["example.com/a"]; got != want {
				t.Errorf("another annotation is %q, was %q", got, want)
			}
			if again := g.admit(t, after, nil); !equality.Semantic.DeepEqual(again, after) {
				t.Errorf("made %+v\nand then %+v", after, again)
			}
		})
	}
}

// The API server mounts a token wherever nothing is mounted yet. The latch has its own volume there.
func TestTheLatchHasNoToken(t *testing.T) {
	mounts := held(t, pod()).Spec.InitContainers[0].VolumeMounts
	if !slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return m.MountPath == tokenPath && m.Name == v1alpha1.LatchName }) {
		t.Errorf("nothing is in the token's place: %+v", mounts)
	}
}

func TestLatchHasADeadlineIfEveryStartHoldRuleOpensOnDeadline(t *testing.T) {
	cases := map[string]struct {
		rules []*v1alpha1.PodReadinessRule
		want  string
	}{
		"one opens":                               {podRules(podRule("a", holdsStart, opensAfter(60))), "60"},
		"one reports":                             {podRules(podRule("a", holdsStart, reportsAfter(60))), ""},
		"one has no deadline":                     {podRules(podRule("a", holdsStart)), ""},
		"one opens, and never":                    {podRules(podRule("a", holdsStart, func(r *v1alpha1.PodReadinessRule) { r.Spec.OnDeadline = v1alpha1.DeadlineOpen })), ""},
		"all open: the last counts":               {podRules(podRule("a", holdsStart, opensAfter(60)), podRule("b", holdsStart, opensAfter(300)), podRule("c", holdsStart, opensAfter(9))), "300"},
		"one of them reports":                     {podRules(podRule("a", holdsStart, opensAfter(60)), podRule("b", holdsStart, reportsAfter(300))), ""},
		"the first of them reports":               {podRules(podRule("a", holdsStart, reportsAfter(300)), podRule("b", holdsStart, opensAfter(60))), ""},
		"a rule that holds no start is not asked": {podRules(podRule("a", holdsStart, opensAfter(60)), podRule("b", opensAfter(300))), "60"},
		"nor one that does not select the pod":    {podRules(podRule("a", holdsStart, opensAfter(60)), podRule("b", holdsStart, ofPods(exactly("app", "other")))), "60"},
		"nor one that is being deleted":           {podRules(podRule("a", holdsStart, opensAfter(60)), podRule("b", holdsStart, beingDeleted)), "60"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := pod()
			after := newGater(t, c.rules...).admit(t, p, nil)
			if got, want := after.Spec.InitContainers[0], latchOf(p, c.want); !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestWithoutAnImageOfTheLatchNoStartIsHeld(t *testing.T) {
	rules := podrule.NewRules(podRules(podRule("network", holdsStart, opensAfter(60))))
	g := gater{newMutator(t, admission.GateNewPodsSpec(admission.Latch{})(admission.CompileGateNewPods(rules, admission.Latch{})))}
	after := g.admit(t, pod(), nil)
	wantEqual(t, "gates", gateNames(after), []string{networkGate})
	if len(after.Spec.InitContainers) > 0 || len(after.Spec.Volumes) > 0 {
		t.Errorf("there is more: %+v", after.Spec)
	}
}

func TestGateNewPodsPolicyWithoutRulesDoesNothing(t *testing.T) {
	g := gater{newMutator(t, admission.GateNewPodsPolicy().Spec)}
	for _, p := range []*corev1.Pod{pod(), pod(hasGates(networkGate)), pod(emptied)} {
		want := p.DeepCopy()
		got := g.admit(t, p, nil)
		want.TypeMeta = got.TypeMeta
		if !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("changed %+v\nto %+v", want, got)
		}
	}
}

func TestOnlyEnforcedPodRulesAreInThePolicy(t *testing.T) {
	for name, c := range map[string]struct {
		rule    *v1alpha1.PodReadinessRule
		covered bool
	}{
		"a rule that is enforced":      {rule: podRule("other"), covered: true},
		"a rule that is being deleted": {rule: podRule("other", beingDeleted)},
		"a rule that is not valid":     {rule: podRule("other", ofNamespaces(exactly("not valid", "a")))},
	} {
		b := gates(podRule("network"), c.rule)
		if got := b.Covers(uidOf("other")); got != c.covered {
			t.Errorf("%s: covered %t, want %t", name, got, c.covered)
		}
		if !b.Covers(uidOf("network")) || b.LeavesOut(uidOf("other")) {
			t.Errorf("%s: the other rule is not covered, or this one is reported as left out", name)
		}
	}
}

// goldenPodRules are rules of every kind, so that every expression that a rule can become is seen
// in a review of a change.
func goldenPodRules() []*v1alpha1.PodReadinessRule {
	return podRules(
		podRule("network"),
		podRule("holds", holdsStart),
		podRule("holds-and-opens", holdsStart, opensAfter(60)),
		podRule("opens", opensAfter(60)),
		podRule("other-gate", withGate(otherGate), ofPods(exactly("app", "web"))),
		podRule("every-operator", ofNamespaces(matching(
			labelled("example.com/team", "In", "b", "a"), labelled("example.com/stage", "NotIn", "", "test"), labelled("example.com/on", "Exists"), labelled("example.com/off", "DoesNotExist"))),
			ofPods(matching(labelled("app", "In", "b", "a"), labelled("app", "NotIn", "c"), labelled("tier", "Exists"), labelled("skip", "DoesNotExist")))),
		podRule("names-kube-system", ofNamespaces(exactly(corev1.LabelMetadataName, metav1.NamespaceSystem))),
		podRule("names-both", ofNamespaces(matching(labelled(corev1.LabelMetadataName, "In", metav1.NamespaceSystem, admission.ManagerNamespace)))),
	)
}

// filledGates is the policy as the manager fills it.
func filledGates() *admissionv1.MutatingAdmissionPolicy {
	filled := admission.GateNewPodsPolicy()
	filled.Spec = admission.GateNewPodsSpec(podLatch)(gates(goldenPodRules()...))
	return filled
}

func TestGateNewPodsPolicyCompilesOnEveryAPIServer(t *testing.T) {
	newest := environment.DefaultCompatibilityVersion().OffsetMinor(1)
	for language := oldestForMutating; !newest.LessThan(language); language = language.OffsetMinor(1) {
		newMutatorFor(t, language, filledGates().Spec)
		newMutatorFor(t, language, admission.GateNewPodsPolicy().Spec)
	}
}

func TestGateNewPodsPolicyCanBeReadBack(t *testing.T) {
	b, spec := gates(goldenPodRules()...), filledGates().Spec
	if read := admission.ReadGateNewPods(podLatch)(&spec); !read.Equal(b) {
		t.Errorf("wrote %+v\nread %+v", b, read)
	}
	empty := admission.GateNewPodsPolicy().Spec
	if read := admission.ReadGateNewPods(admission.Latch{})(&empty); !read.Equal(admission.Compiled{}) || !gates().Equal(read) {
		t.Errorf("of no rules, read %+v", read)
	}
}

// A policy that a user has edited, or that has another latch, is not reliable.
func TestEditedGateNewPodsPolicyCoversNothing(t *testing.T) {
	for name, edit := range map[string]func(*admissionv1.MutatingAdmissionPolicySpec){
		"another image": func(s *admissionv1.MutatingAdmissionPolicySpec) {
			*s = admission.GateNewPodsSpec(admission.Latch{Image: "other"})(gates(podRule("network")))
		},
		"a match condition is added": func(s *admissionv1.MutatingAdmissionPolicySpec) {
			s.MatchConditions = append(s.MatchConditions, admissionv1.MatchCondition{Name: "never", Expression: "false"})
		},
		"what all rules have in common": func(s *admissionv1.MutatingAdmissionPolicySpec) {
			s.MatchConditions[0].Expression = strings.Replace(s.MatchConditions[0].Expression, "hostNetwork", "hostPID", 1)
		},
		"another resource": func(s *admissionv1.MutatingAdmissionPolicySpec) {
			s.MatchConstraints.ResourceRules[0].Resources = []string{"nodes"}
		},
		"some namespaces are left out": func(s *admissionv1.MutatingAdmissionPolicySpec) {
			s.MatchConstraints.NamespaceSelector.MatchLabels = map[string]string{"a": "b"}
		},
		"a variable":      func(s *admissionv1.MutatingAdmissionPolicySpec) { s.Variables[0].Expression = "{}" },
		"the patch":       func(s *admissionv1.MutatingAdmissionPolicySpec) { s.Mutations[0].JSONPatch.Expression = "[]" },
		"it fails closed": func(s *admissionv1.MutatingAdmissionPolicySpec) { *s.FailurePolicy = admissionv1.Fail },
	} {
		spec := admission.GateNewPodsSpec(podLatch)(gates(podRule("network")))
		edit(&spec)
		read := admission.ReadGateNewPods(podLatch)(&spec)
		if read.Covers(uidOf("network")) || len(read.Texts()) > 0 {
			t.Errorf("%s: read %+v", name, read)
		}
		if !read.Names(admission.VariableOf(uidOf("network"))) {
			t.Errorf("%s: Names does not report the rule", name)
		}
	}
}

// Neither the order of rules nor that of a map may show in the text, even where a selector has more
// entries than a small sort keeps in order.
func TestTheSamePodRulesMakeTheSameText(t *testing.T) {
	wide := func() *v1alpha1.PodReadinessRule {
		selector := &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{}}
		for i := range 16 {
			key := fmt.Sprintf("key-%d", i)
			selector.MatchLabels[key] = "a"
			selector.MatchExpressions = append(selector.MatchExpressions, labelled(key, "In", "a", "b"))
		}
		return podRule("wide", ofNamespaces(selector), ofPods(selector))
	}
	want := gates(wide(), podRule("network"))
	for range 50 {
		if got := gates(podRule("network"), wide()); !got.Equal(want) {
			t.Fatalf("made %+v\nand %+v", want, got)
		}
	}
}

// A gate and an image are what is in their literals and nothing else: however odd, the policy
// compiles, and is the same but for the literals.
func TestNoGateOrImageCanChangeTheExpression(t *testing.T) {
	specOf := func(gate, image string) admissionv1.MutatingAdmissionPolicySpec {
		odd := admission.Latch{Image: image}
		return admission.GateNewPodsSpec(odd)(admission.CompileGateNewPods(podrule.NewRules(podRules(podRule("r", withGate(gate), holdsStart))), odd))
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Map(anyText(), func(s string) string { return strings.ToValidUTF8(s, "\ufffd") })
		gate, image := "x"+text.Draw(t, "gate"), "x"+text.Draw(t, "image")
		got, want := specOf(gate, image), specOf("tame", "image")
		for i := range got.Variables {
			if got, want := withoutLiterals(got.Variables[i]), withoutLiterals(want.Variables[i]); got != want {
				t.Fatalf("got  %s\nwant %s", got, want)
			}
		}
		after := gater{newMutator(t, got)}.admit(t, pod(), nil)
		wantEqual(t, "gates", gateNames(after), []string{gate})
		wantEqual(t, "note and image", []string{after.Annotations[v1alpha1.GatesAnnotation], after.Spec.InitContainers[0].Image}, []string{gate, image})
	})
}

// A rule whose labels no object can have is not valid, and not in the text.
func TestTextsThatNoPodCanHaveAreNotCompiled(t *testing.T) {
	odd := regexp.MustCompile(`[^-A-Za-z0-9_./]`)
	rapid.Check(t, func(t *rapid.T) {
		text := anyText().Draw(t, "text")
		for what, selector := range map[string]*v1alpha1.LabelSelector{
			"key": exactly(text, "a"), "value": exactly("a", text), "key of an expression": matching(labelled(text, "Exists")),
			"value of an expression": matching(labelled("a", "NotIn", text)), "operator": matching(labelled("a", text)),
		} {
			for _, option := range []podRuleOption{ofPods(selector), ofNamespaces(selector)} {
				r := podRule("r", option)
				valid := podrule.NewRule(r).Invalid == nil
				if got := gates(r).Covers(r.UID); got != valid || valid && odd.MatchString(text) {
					t.Fatalf("%s %q: valid %t, compiled %t", what, text, valid, got)
				}
			}
		}
	})
}

// The API server takes no variable whose name is a word of the language, or is kept for one.
func TestNoVariableHasTheNameOfAReservedWord(t *testing.T) {
	reserved := strings.Fields("true false null in as break const continue else for function if import let loop package namespace return var void while")
	identifier := regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)
	for _, object := range append(everyObject(), filledGates()) {
		var variables []admissionv1.Variable
		switch p := object.(type) {
		case *admissionv1.MutatingAdmissionPolicy:
			variables = p.Spec.Variables
		case *admissionv1.ValidatingAdmissionPolicy:
			variables = p.Spec.Variables
		}
		for _, v := range variables {
			if slices.Contains(reserved, v.Name) || !identifier.MatchString(v.Name) {
				t.Errorf("%s: %s is no name for a variable", fileOf(t, object), v.Name)
			}
		}
	}
}

// manyPodRules are as many rules, each with a gate of its own.
func manyPodRules(n int, options ...podRuleOption) []*v1alpha1.PodReadinessRule {
	var objs []*v1alpha1.PodReadinessRule
	for i := range n {
		objs = append(objs, podRule(fmt.Sprintf("rule-%d", i), append([]podRuleOption{withGate(fmt.Sprintf("a.io/%d", i))}, options...)...))
	}
	return objs
}

// The largest policies that there can be still are policies, and a heavy pod that all rules select
// does not exceed their budget: a policy that fails would gate no pod.
func TestLargestGateNewPodsPoliciesWork(t *testing.T) {
	var selector v1alpha1.LabelSelector
	for i := range 16 {
		values := make([]string, 60)
		for j := range values {
			values[j] = fmt.Sprintf("value-%d", j)
		}
		selector.MatchExpressions = append(selector.MatchExpressions, labelled(fmt.Sprintf("example.com/label-%d", i), "NotIn", values...))
	}
	heavy := pod(hasGates(foreignGate), podNote(v1alpha1.GatesAnnotation, strings.Repeat("example.com/x ", 50)))
	for i := range 60 {
		podLabel(fmt.Sprintf("example.com/label-%d", i), "value")(heavy)
		podNote(fmt.Sprintf("example.com/note-%d", i), strings.Repeat("value ", 50))(heavy)
		container(fmt.Sprintf("c%d", i), corev1.ResourceRequirements{})(heavy)
		volume(fmt.Sprintf("v%d", i))(heavy)
	}
	for name, objs := range map[string][]*v1alpha1.PodReadinessRule{
		"as many rules as fit":          manyPodRules(1000, holdsStart, opensAfter(60)),
		"pods selected as wide as fits": manyPodRules(20, ofPods(&selector)),
		"namespaces selected like that": manyPodRules(20, ofNamespaces(&selector)),
	} {
		t.Run(name, func(t *testing.T) {
			b := gates(objs...)
			want := len(heavy.Spec.ReadinessGates)
			for _, obj := range objs {
				if b.Covers(obj.UID) {
					want++
				}
			}
			if want-1 == len(objs) || want < 5 {
				t.Fatalf("%d of %d rules are not as many as fit", want-1, len(objs))
			}
			after := gater{newMutator(t, admission.GateNewPodsSpec(podLatch)(b))}.admit(t, heavy, nil)
			if got := len(after.Spec.ReadinessGates); got != want {
				t.Errorf("%d gates, want %d", got, want)
			}
		})
	}
}

// Two expressions name all rules, and an API server takes no more than 100,000 characters of each.
func TestExpressionsThatNameAllRulesFit(t *testing.T) {
	objs := manyRules(8, excluding(16, 120), taintEffect(corev1.TaintEffectNoExecute))
	b := taintNewNodes(objs...)
	if covered := coveredOf(b, objs); covered == 0 || covered == len(objs) {
		t.Fatalf("%d of %d rules are not as many as fit", covered, len(objs))
	}
	for _, spec := range []admissionv1.MutatingAdmissionPolicySpec{
		admission.TaintNewNodesSpec(b), admission.GateNewPodsSpec(podLatch)(gates(manyPodRules(1000)...)),
	} {
		for _, v := range append(spec.Variables, admissionv1.Variable{Name: "match condition", Expression: spec.MatchConditions[0].Expression}) {
			if len(v.Expression) > 100_000 {
				t.Errorf("%s has %d characters", v.Name, len(v.Expression))
			}
		}
	}
}

// The binding, which the manager may not write, confines the policy to the creation of pods.
func TestGateNewPodsPolicyMatchesOnlyTheCreationOfPods(t *testing.T) {
	for _, match := range []*admissionv1.MatchResources{admission.GateNewPodsBinding().Spec.MatchResources, admission.GateNewPodsPolicy().Spec.MatchConstraints} {
		if len(match.ResourceRules) != 1 {
			t.Fatalf("%+v", match)
		}
		is := match.ResourceRules[0]
		wantEqual(t, "resources", is.Resources, []string{"pods"})
		wantEqual(t, "groups", is.APIGroups, []string{""})
		if !slices.Equal(is.Operations, []admissionv1.OperationType{admissionv1.Create}) {
			t.Errorf("operations: %v", is.Operations)
		}
	}
}

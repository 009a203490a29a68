package podgate_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/testenv"
)

// held is the label app of pods whose start is held in TestALatch.
const held = "held"

// A latch changes only when containers start. Its pods are
// compared with the same pods that opt out.
func TestALatch(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.enforce(s.rule(held, startHold))
	t.Run("comes before all other init containers", func(t *testing.T) { latchComesFirst(s.in(t)) })
	t.Run("is not for Windows", func(t *testing.T) { latchIsNotForWindows(s.in(t)) })
	t.Run("has no token", func(t *testing.T) { latchHasNoToken(s.in(t)) })
	t.Run("has no key of another pod", func(t *testing.T) { latchHasNoForeignKey(s.in(t)) })
	t.Run("runs as no user of its own", func(t *testing.T) { latchRunsAsThePod(s.in(t)) })
	t.Run("leaves the class of a pod", func(t *testing.T) { latchLeavesTheClass(s.in(t)) })
	t.Run("is admitted where only restricted pods are", func(t *testing.T) { latchIsRestricted(s.in(t)) })
	t.Run("is within the limits that the pod is in", func(t *testing.T) { latchIsWithinLimits(s.in(t)) })
	t.Run("takes nothing of a quota", func(t *testing.T) { latchTakesNoQuota(s.in(t)) })
}

// latchOf returns the latch of a pod, which must be its first init container; nil if it has none.
func latchOf(pod *corev1.Pod) *corev1.Container {
	if len(pod.Spec.InitContainers) == 0 || pod.Spec.InitContainers[0].Name != v1alpha1.LatchName {
		return nil
	}
	return &pod.Spec.InitContainers[0]
}

func latchComesFirst(s *stage) {
	pod := s.pod(held, func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{
			{Name: "sidecar", Image: "sidecar", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}, {Name: "setup", Image: "setup"},
		}
	})
	var names []string
	for _, c := range pod.Spec.InitContainers {
		names = append(names, c.Name)
	}
	if !slices.Equal(names, []string{v1alpha1.LatchName, "sidecar", "setup"}) {
		s.t.Fatalf("init containers are %v", names)
	}
	if latch := latchOf(pod); latch.Image != latchImage || latch.RestartPolicy != nil {
		s.t.Errorf("the latch is %+v", latch)
	}
	if gates, _ := gatesOf(pod); len(gates) != 1 {
		s.t.Errorf("gates are %v", gates)
	}
}

func latchIsNotForWindows(s *stage) {
	pod := s.pod(held, func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} })
	if gates, _ := gatesOf(pod); len(gates) > 0 || len(pod.Spec.InitContainers) > 0 {
		s.t.Errorf("gates are %v, init containers %v", gates, pod.Spec.InitContainers)
	}
}

// The API server mounts the token into every container without a mount at its path. (Not here, because
// there are no tokens; the end-to-end tests check the result.)
func latchHasNoToken(s *stage) {
	const place = "/var/run/secrets/kubernetes.io/serviceaccount"
	pod := s.pod(held)
	mount := func(c *corev1.Container) *corev1.Volume {
		for _, m := range c.VolumeMounts {
			if m.MountPath != place {
				continue
			}
			if i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }); i >= 0 {
				return &pod.Spec.Volumes[i]
			}
		}
		return nil
	}
	latch := latchOf(pod)
	if latch == nil {
		s.t.Fatal("there is no latch")
	}
	if shadow := mount(latch); shadow == nil || shadow.DownwardAPI == nil {
		s.t.Errorf("at the token's place is %+v", shadow)
	}
	for _, m := range latch.VolumeMounts {
		if m.Name != v1alpha1.LatchName {
			s.t.Errorf("the latch has %s, too", m.Name)
		}
	}
}

// withKey adds a latch key to a pod, like a pod that was held when Readygate was uninstalled.
func withKey(p *corev1.Pod) {
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1alpha1.LatchAnnotation, "always "+v1alpha1.ReasonRuleDeleted)
}

// A pod that is created with a latch key was copied from another pod, or restored from a backup.
func latchHasNoForeignKey(s *stage) {
	const own = "example.com/own"
	ofItsOwn := func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, own, "a") }
	copied := s.pod(held, withKey, ofItsOwn, named("copied"))
	restored := s.newPod(held, named("restored"))
	restored.Annotations, restored.Spec = maps.Clone(copied.Annotations), copied.Spec
	withKey(restored)
	s.createPod(restored)
	for _, pod := range []*corev1.Pod{copied, restored} {
		if key, has := pod.Annotations[v1alpha1.LatchAnnotation]; has || pod.Annotations[own] != "a" || latchOf(pod) == nil {
			s.t.Errorf("pod %s has the key %q, the annotations %v and the latch %v", pod.Name, key, pod.Annotations, latchOf(pod))
		}
		if gates, noted := gatesOf(pod); len(gates) != 1 || noted != gates[0] {
			s.t.Errorf("pod %s has the gates %v and the note %q", pod.Name, gates, noted)
		}
	}
	if other := s.pod(held, withKey, optOut, named("other")); other.Annotations[v1alpha1.LatchAnnotation] == "" {
		s.t.Error("the key of a pod without a latch is gone, too")
	}
}

// If a policy restricts user IDs to a range, the API server rejects a pod with another one.
func latchRunsAsThePod(s *stage) {
	for name, tc := range map[string]struct {
		pod  *corev1.PodSecurityContext
		want *int64
	}{
		"says nothing":     {nil, nil},
		"has a user":       {&corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1000650000)}, nil},
		"runs as root":     {&corev1.PodSecurityContext{RunAsUser: ptr.To[int64](0)}, ptr.To[int64](65532)},
		"has root's group": {&corev1.PodSecurityContext{RunAsGroup: ptr.To[int64](0)}, nil},
	} {
		pod := s.newPod(held, func(p *corev1.Pod) { p.Spec.SecurityContext = tc.pod })
		if err := s.Client.Create(s.t.Context(), pod, client.DryRunAll); err != nil {
			s.t.Fatal(err)
		}
		latch := latchOf(pod)
		if latch == nil || latch.SecurityContext == nil {
			s.t.Fatalf("a pod that %s has the latch %v", name, latch)
		}
		is := latch.SecurityContext
		if !ptr.Equal(is.RunAsUser, tc.want) || !ptr.Equal(is.RunAsGroup, tc.want) || !ptr.Deref(is.RunAsNonRoot, false) {
			s.t.Errorf("a pod that %s has a latch with %+v", name, is)
		}
	}
}

// amounts are CPU, memory and ephemeral storage.
func amounts(cpu, memory, storage string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, amount := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory, corev1.ResourceEphemeralStorage: storage} {
		if amount != "" {
			list[name] = resource.MustParse(amount)
		}
	}
	return list
}

// asks sets the resource requests of the containers of a pod, in order.
func asks(all ...corev1.ResourceRequirements) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers = nil
		for i, resources := range all {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprintf("app-%d", i), Image: "app", Resources: resources})
		}
	}
}

func latchLeavesTheClass(s *stage) {
	none := corev1.ResourceRequirements{}
	some := corev1.ResourceRequirements{Requests: amounts("100m", "", "")}
	all := corev1.ResourceRequirements{Requests: amounts("100m", "32Mi", ""), Limits: amounts("100m", "32Mi", "")}
	more := corev1.ResourceRequirements{Requests: amounts("1", "1Gi", "1Gi"), Limits: amounts("1", "1Gi", "1Gi")}
	for name, tc := range map[string]struct {
		asks func(*corev1.Pod)
		want corev1.PodQOSClass
	}{
		"asks for nothing":                   {asks(none), corev1.PodQOSBestEffort},
		"asks for something":                 {asks(some), corev1.PodQOSBurstable},
		"asks for something in its second":   {asks(none, some), corev1.PodQOSBurstable},
		"asks for all in its second":         {asks(none, all), corev1.PodQOSBurstable},
		"is guaranteed":                      {asks(all), corev1.PodQOSGuaranteed},
		"is guaranteed, and differs in size": {asks(more, all), corev1.PodQOSGuaranteed},
	} {
		for _, change := range []func(*corev1.Pod){optOut, func(*corev1.Pod) {}} {
			pod := s.newPod(held, tc.asks, change)
			if err := s.Client.Create(s.t.Context(), pod, client.DryRunAll); err != nil {
				s.t.Fatal(err)
			}
			if pod.Status.QOSClass != tc.want {
				s.t.Errorf("a pod that %s is %s with %d init containers", name, pod.Status.QOSClass, len(pod.Spec.InitContainers))
			}
			if latch := latchOf(pod); (latch == nil) != (pod.Labels[v1alpha1.OptOutLabel] == v1alpha1.OptOut) {
				s.t.Errorf("a pod that %s and has the labels %v has the latch %v", name, pod.Labels, latch)
			}
		}
	}
}

// restricted makes a pod comply with the restricted Pod Security level.
func restricted(p *corev1.Pod) {
	p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// inside sets the namespace of a pod.
func inside(namespace string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Namespace = namespace }
}

func latchIsRestricted(s *stage) {
	namespace := s.id + "-restricted"
	labels := s.labels()
	labels["pod-security.kubernetes.io/enforce"] = "restricted"
	s.namespace(namespace, labels)
	s.wantRefused("violates PodSecurity", optOut, inside(namespace))
	pod := s.newPod(held, inside(namespace), restricted)
	if err := s.Client.Create(s.t.Context(), pod, client.DryRunAll); err != nil {
		s.t.Errorf("refused: %v", err)
	}
	if latchOf(pod) == nil {
		s.t.Error("there is no latch")
	}
}

// wantRefused waits until the API server rejects a pod with this text, so the policy is in force.
func (s *stage) wantRefused(words string, change ...func(*corev1.Pod)) {
	s.t.Helper()
	testenv.Eventually(s.t, "a refusal: "+words, func(ctx context.Context) error {
		err := s.Client.Create(ctx, s.newPod(held, change...), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), words) {
			return fmt.Errorf("the answer is %v", err)
		}
		return nil
	})
}

func latchIsWithinLimits(s *stage) {
	namespace := s.id + "-limits"
	s.namespace(namespace, s.labels())
	s.Create(s.t, &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "limits"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, Min: amounts("100m", "32Mi", ""), DefaultRequest: amounts("100m", "32Mi", ""), Default: amounts("200m", "64Mi", "")},
			// Less than twice what a pod gets that asks for nothing.
			{Type: corev1.LimitTypePod, Max: amounts("300m", "96Mi", "")},
		}},
	})
	both := func(cpu, memory string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: amounts(cpu, memory, ""), Limits: amounts(cpu, memory, "")}
	}
	s.wantRefused("minimum cpu usage per Container", optOut, inside(namespace), asks(both("50m", "32Mi")))
	for name, tc := range map[string]struct {
		asks    func(*corev1.Pod)
		refused bool
	}{
		"nothing":    {asks(corev1.ResourceRequirements{}), false},
		"enough":     {asks(both("300m", "96Mi")), false},
		"in two":     {asks(both("200m", "32Mi"), both("100m", "32Mi")), false},
		"too little": {asks(both("100m", "16Mi")), true},
		"too much":   {asks(both("400m", "64Mi")), true},
	} {
		for _, change := range []func(*corev1.Pod){optOut, func(*corev1.Pod) {}} {
			pod := s.newPod(held, inside(namespace), tc.asks, change)
			switch err := s.Client.Create(s.t.Context(), pod, client.DryRunAll); {
			case tc.refused != apierrors.IsForbidden(err) || !tc.refused && err != nil:
				s.t.Errorf("a pod that asks for %s and has the labels %v: %v", name, pod.Labels, err)
			case err == nil && (latchOf(pod) == nil) != (pod.Labels[v1alpha1.OptOutLabel] == v1alpha1.OptOut):
				s.t.Errorf("a pod that asks for %s and has the labels %v has the init containers %v", name, pod.Labels, pod.Spec.InitContainers)
			}
		}
	}
}

func latchTakesNoQuota(s *stage) {
	namespace := s.id + "-quota"
	s.namespace(namespace, s.labels())
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "quota"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			corev1.ResourcePods: resource.MustParse("10"), corev1.ResourceRequestsCPU: resource.MustParse("1"), corev1.ResourceLimitsCPU: resource.MustParse("2"),
			corev1.ResourceRequestsMemory: resource.MustParse("1Gi"), corev1.ResourceLimitsMemory: resource.MustParse("1Gi"), corev1.ResourceRequestsEphemeralStorage: resource.MustParse("8Gi"),
		}},
	}
	s.Create(s.t, quota)
	quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, corev1.ResourceList{}
	for name := range quota.Spec.Hard { // no other pod counts here
		quota.Status.Used[name] = resource.MustParse("0")
	}
	if err := s.Client.Status().Update(s.t.Context(), quota); err != nil {
		s.t.Fatal(err)
	}
	s.wantRefused("exceeded quota", optOut, inside(namespace), asks(corev1.ResourceRequirements{Requests: amounts("5", "32Mi", ""), Limits: amounts("5", "64Mi", "")}))

	ask := asks(corev1.ResourceRequirements{Requests: amounts("100m", "32Mi", "1Gi"), Limits: amounts("200m", "64Mi", "2Gi")})
	plain := s.pod(held, inside(namespace), ask, optOut, named("plain"))
	before := s.used(quota)
	latched := s.pod(held, inside(namespace), ask)
	if latchOf(plain) != nil || latchOf(latched) == nil {
		s.t.Fatalf("init containers are %v and %v", plain.Spec.InitContainers, latched.Spec.InitContainers)
	}
	for name, after := range s.used(quota) {
		one := before[name]
		after.Sub(one)
		if after.Cmp(one) != 0 || one.IsZero() {
			s.t.Errorf("of %s a pod takes %s, and one with a latch %s", name, one.String(), after.String())
		}
	}
}

// used returns the quota usage of pods.
func (s *stage) used(quota *corev1.ResourceQuota) corev1.ResourceList {
	s.t.Helper()
	now := &corev1.ResourceQuota{}
	err := s.Client.Get(s.t.Context(), client.ObjectKeyFromObject(quota), now)
	if err == nil && len(now.Status.Used) == 0 {
		err = errors.New("the quota is not updated")
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return now.Status.Used
}

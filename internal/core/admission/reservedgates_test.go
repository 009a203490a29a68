package admission_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
)

const (
	reservedGate = "only Readygate may set the reserved gates " + networkGate + ", " + otherGate + ", example.com/absent of this pod to True: set a condition of your own type, " +
		"e.g. policy.example.com/programmed, and list it as a podCondition component in the PodReadinessRule"
	reservedLatch  = "only Readygate may open the latch of this pod (annotation readygate.dev/latch): to start it without its network, label it readygate.dev/opt-out=true"
	reservedNote   = "the annotation readygate.dev/gates lists the reserved gates of this pod and must not be changed or removed: leave it as it is"
	reservedLabels = "labels of a pod with reserved gates must not be changed through pods/status, because rules select pods by labels: patch the pod itself"
)

// Only the accounts of Readygate set gates of rules to True and open a latch; every account may do all else.
func TestOnlyReadygateOpensReservedGates(t *testing.T) {
	latch := func(value string) podOption { return podNote(v1alpha1.LatchAnnotation, value) }
	open := all(opened(v1alpha1.ReasonAllReady), latch("open 10.0.0.7 boot -"))
	unasked := func(p *corev1.Pod) { delete(p.Annotations, v1alpha1.GatesAnnotation) }
	for name, tc := range map[string]struct {
		before, change podOption
		want           []string
	}{
		"the gate is opened":                        {all(), opened("Programmed"), []string{reservedGate}},
		"the gate is opened with a reason of ours":  {all(), opened(v1alpha1.ReasonAllReady), []string{reservedGate}},
		"gate and latch are opened":                 {all(), open, []string{reservedGate, reservedLatch}},
		"a gate without a condition is opened":      {all(), withCondition(otherGate, True), []string{reservedGate}},
		"the latch is opened for good":              {all(), latch("always ByHand"), []string{reservedLatch}},
		"the reason of an open gate":                {open, opened("Programmed"), []string{reservedGate}},
		"the time of an open gate":                  {open, changesCondition(2, func(c *corev1.PodCondition) { c.LastTransitionTime = metav1.NewTime(noon) }), []string{reservedGate}},
		"an open gate is there twice":               {open, withCondition(networkGate, True), []string{reservedGate}},
		"the note is removed":                       {all(), unasked, []string{reservedNote}},
		"the note is changed":                       {all(), podNote(v1alpha1.GatesAnnotation, otherGate), []string{reservedNote}},
		"the note is removed and the gate opened":   {all(), all(unasked, opened("Programmed")), []string{reservedGate, reservedNote}},
		"an open gate is closed":                    {open, changesCondition(2, func(c *corev1.PodCondition) { c.Status = False }), nil},
		"the gate is closed, with another reason":   {all(), changesCondition(2, func(c *corev1.PodCondition) { c.Reason = "Other" }), nil},
		"the gate's condition is removed":           {open, saysOnly(0, 1), nil},
		"an open gate is left as it is":             {open, changesCondition(1, isTrue), nil},
		"an open gate is moved":                     {open, saysOnly(2, 0, 1), nil},
		"Ready":                                     {all(), changesCondition(1, isTrue), nil},
		"a condition of Kubernetes that is noted":   {all(), withCondition("ContainersReady", True), nil},
		"a condition of a component":                {all(), withCondition("policy.example.com/programmed", True), nil},
		"a gate of another controller":              {all(), withCondition(foreignGate, True), nil},
		"the latch is closed":                       {open, latch("closed - - -"), nil},
		"the key of the latch is removed":           {open, func(p *corev1.Pod) { delete(p.Annotations, v1alpha1.LatchAnnotation) }, nil},
		"another annotation":                        {open, podNote("c", "d"), nil},
		"a label":                                   {open, podLabel("c", "d"), []string{reservedLabels}},
		"the label that opts out":                   {all(), podLabel(v1alpha1.OptOutLabel, v1alpha1.OptOut), []string{reservedLabels}},
		"all labels are removed":                    {podLabel("c", "d"), func(p *corev1.Pod) { p.Labels = nil }, []string{reservedLabels}},
		"a label of a pod that no rule selected":    {unasked, podLabel("c", "d"), nil},
		"the gate of a pod that no rule selected":   {unasked, opened("Programmed"), nil},
		"what the API server does with every write": {open, storedAgain, nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := newValidator(t, admission.ReservedGates().Spec)
			request := updatedPod(waiting(tc.before), waiting(tc.before, tc.change)).of("status")
			for _, other := range []string{"system:node:n", "system:serviceaccount:kube-system:cni", "kubernetes-admin", admission.ManagerUser + "2", ""} {
				wantEqual(t, "refused to "+other, v.refuses(t, request.by(other)), tc.want)
			}
			for _, account := range append(openers, admission.PodgateUser) {
				wantEqual(t, "refused to "+account, v.refuses(t, request.by(account)), nil)
			}
		})
	}
}

// The owner of a pod may label the pod itself.
func TestOwnersMayLabelPodsWithReservedGates(t *testing.T) {
	v := newValidator(t, admission.ReservedGates().Spec)
	request := updatedPod(waiting(), waiting(podLabel(v1alpha1.OptOutLabel, v1alpha1.OptOut)))
	wantEqual(t, "refused", v.refuses(t, request.by("kubernetes-admin")), nil)
}

// The policy fails closed and sees the status updates of kubelets: none of these may be refused, and no
// expression may fail.
func TestStatusUpdatesOfKubeletsPassReservedGates(t *testing.T) {
	v := newValidator(t, admission.ReservedGates().Spec)
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			before := genSubject(t).Pod
			after := before.DeepCopy()
			all(withCondition("Ready", True), storedAgain)(after)
			wantEqual(t, "refused", v.refuses(t, updatedPod(before, after).of("status").by("system:node:n")), nil)
		}
	})
}

package admission_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func TestOnlyItsReporterMayWriteAReservedCondition(t *testing.T) {
	ready := func() *corev1.Node { return node(reports("Ready", True), reports(calicoReady, True)) }
	cases := map[string]struct {
		request request
		touches bool
	}{
		"a node that is created":      {request: created(node(reports("Ready", False)))},
		"a bare node that is created": {request: created(node())},
		"created with the condition":  {request: created(ready()), touches: true},
		"the condition is added":      {request: updated(node(reports("Ready", True)), ready()).of("status"), touches: true},
		"changed":                     {request: updated(ready(), node(reports("Ready", True), reports(calicoReady, False))).of("status"), touches: true},
		"its heartbeat is": {touches: true, request: updated(ready(), node(reports("Ready", True), reports(calicoReady, True),
			setCondition(1, func(c *corev1.NodeCondition) { c.LastHeartbeatTime = metav1.NewTime(noon) }))).of("status")},
		"removed":                        {request: updated(ready(), node(reports("Ready", True))).of("status"), touches: true},
		"removed with all conditions":    {request: updated(ready(), node()).of("status"), touches: true},
		"doubled":                        {request: updated(ready(), node(reports("Ready", True), reports(calicoReady, True), reports(calicoReady, True))).of("status"), touches: true},
		"left":                           {request: updated(ready(), ready()).of("status")},
		"left, while others are changed": {request: updated(ready(), node(reports(calicoReady, True), reports("Other", True))).of("status")},
		"left, while labels are":         {request: updated(ready(), node(reports("Ready", True), reports(calicoReady, True), label("a", "b")))},
		"one that looks alike is added":  {request: updated(node(), node(reports(calicoReady+"x", True))).of("status")},
		"there never was one":            {request: updated(node(), node(label("a", "b")))},
	}
	v := newValidator(t, reporter.Reserved().Spec)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var want []string
			if c.touches {
				want = []string{"only " + reporterUser + " may add, change or remove the condition " + calicoReady +
					" of a node: leave it as it is, or delete the binding of this policy first"}
			}
			for _, user := range []string{"system:node:n", "system:serviceaccount:kube-system:calico-node", "kubernetes-admin", ""} {
				wantEqual(t, "refused to "+user, v.refuses(t, c.request.by(user)), want)
			}
			wantEqual(t, "refused to the reporter", v.refuses(t, c.request.by(reporterUser)), nil)
		})
	}
}

// A mistake here would keep kubelets from registering and reporting: nothing that they do
// every day may be refused, and no expression may fail.
func TestOrdinaryWritesOfKubeletsDoNotTouchReservedConditions(t *testing.T) {
	v := newValidator(t, reporter.Reserved().Spec)
	rapid.Check(t, func(t *rapid.T) {
		for range 40 {
			old, n := genKubeletNode(t), genKubeletNode(t)
			wantEqual(t, "refused", v.refuses(t, created(n, kubelets)), nil)
			if rapid.Bool().Draw(t, "reported") {
				reports(calicoReady, True)(old)
				reports(calicoReady, True)(n)
			}
			wantEqual(t, "refused", v.refuses(t, updated(old, n, kubelets).of(rapid.SampledFrom([]string{"", "status"}).Draw(t, "of"))), nil)
		}
	})
}

package reporter_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/testenv"
)

// With the role of the guide and under its policy, a reporter can do its work.
func TestALimitedReporterCanReport(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	c.Create(t, busyNode(id, id))
	reporter := newReporter(t, c, id)
	grant(t, c, guideRole(t, c, id), userOf(reporter.Namespace, reporter.Account))
	api := onNode(t, c, reporter.Namespace, reporter.Account, id)
	limit(t, c, reporter, api, id)

	before, err := patchStatus(t.Context(), api, id, `{}`)
	if err != nil || before.Name != id || len(before.Status.Conditions) != 2 {
		t.Fatalf("an empty patch answers %v, %v", before, err)
	}
	for _, fields := range []string{
		`"status": "False", "reason": "Starting", "message": "not up yet", "lastTransitionTime": "2026-03-01T00:00:00Z"`,
		`"status": "True", "reason": "Up", "message": "", "lastTransitionTime": "2026-03-01T00:01:00Z"`,
		`"lastHeartbeatTime": "2026-03-01T00:02:00Z"`,
	} {
		if _, err := patchStatus(t.Context(), api, id, reports(condition(reporter.Types[0], fields))); err != nil {
			t.Errorf("reporting %s: %v", fields, err)
		}
		c.SetCondition(t, id, "Ready", corev1.ConditionTrue) // the kubelet goes on
	}
	after, err := patchStatus(t.Context(), api, id, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	own := conditionOf(after, reporter.Types[0])
	if len(after.Status.Conditions) != 3 || own == nil || own.Status != "True" || own.Reason != "Up" || own.LastHeartbeatTime.Minute() != 2 {
		t.Fatalf("reported %+v", after.Status.Conditions)
	}
	own.Status = corev1.ConditionUnknown
	if _, err := api.CoreV1().Nodes().UpdateStatus(t.Context(), after, metav1.UpdateOptions{}); err != nil {
		t.Errorf("replacing the status: %v", err)
	}
}

// The roles here let the reporter do everything; the policy does not. internal/core/admission tests every field and
// every change of a condition; this test covers the kinds of patches.
func TestAReporterIsLimited(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	c.Create(t, busyNode(id, id))
	c.Create(t, busyNode(id+"-other", id))
	reporter := newReporter(t, c, id)
	grant(t, c, "cluster-admin", userOf(reporter.Namespace, reporter.Account))
	api := onNode(t, c, reporter.Namespace, reporter.Account, id)
	limit(t, c, reporter, api, id)
	c.SetCondition(t, id, reporter.Types[0], corev1.ConditionFalse)
	t.Run("to its conditions", func(t *testing.T) { limitedToItsConditions(t, c, reporter, api, id) })
	t.Run("not where nothing changes", func(t *testing.T) { wantIdle(t, reporter, api, id) })
	t.Run("to the status of its node", func(t *testing.T) { limitedToTheStatusOfItsNode(t, reporter, api, id) })
	t.Run("to a token that names a node", func(t *testing.T) { limitedToATokenOfANode(t, c, reporter, id) })
	t.Run("and no other account", func(t *testing.T) { otherAccountsAreNotLimited(t, c, reporter, id) })
}

func limitedToItsConditions(t *testing.T, c *testenv.Cluster, reporter admission.Reporter, api kubernetes.Interface, id string) {
	before, err := patchStatus(t.Context(), api, id, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	own, two := reporter.Types[0], reporter.Types[1]
	const conditions, fields = "and not add, change, move or remove ", "a reporter may change conditions of its node, and not "
	for name, tc := range map[string]struct{ patch, refusal string }{
		"its condition changed":      {reports(condition(own, `"status": "True", "reason": "Up"`)), ""},
		"its second condition added": {reports(condition(two, `"status": "True"`)), ""},
		"another condition added":    {reports(condition("example.com/Other", `"status": "True"`)), conditions + "example.com/Other"},
		"the kubelet's changed":      {reports(condition("Ready", `"status": "False"`)), conditions + "Ready"},
		"all replaced by its own":    {reports(`{"$patch": "replace"}`, condition(own, `"status": "True"`)), conditions + "MemoryPressure, Ready"},
		"the whole status removed":   {`{"status": null}`, conditions + "MemoryPressure, Ready"},
		"those of others moved": {`{"status": {"$setElementOrder/conditions": [{"type": "Ready"}, {"type": "MemoryPressure"}, {"type": "` + own + `"}], "conditions": [` +
			condition(own, `"status": "True"`) + `]}}`, conditions + "others"},
		"a field of the status": {`{"status": {"phase": "Running"}}`, fields + "status.phase"},
		"a label removed":       {`{"metadata": {"labels": {"example.com/test": null}}}`, fields + "metadata.labels"},
		"a finalizer":           {`{"metadata": {"finalizers": ["example.com/f"]}}`, fields + "metadata.finalizers"},
	} {
		t.Run(name, func(t *testing.T) {
			changed, err := patchStatus(t.Context(), clientOf(t, c.Config), id, tc.patch, metav1.DryRunAll)
			if err != nil {
				t.Fatalf("others are refused too: %v", err)
			}
			if reflect.DeepEqual(changed, before) {
				t.Error("there is nothing to refuse")
			}
			_, err = patchStatus(t.Context(), api, id, tc.patch, metav1.DryRunAll)
			wantAnswer(t, err, reporter.Policy(), tc.refusal)
		})
	}
}

// wantIdle checks that the policy does not reject patches that change nothing.
func wantIdle(t *testing.T, reporter admission.Reporter, api kubernetes.Interface, id string) {
	before, err := patchStatus(t.Context(), api, id, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	for name, patch := range map[string]string{
		"nothing":        `{}`,
		"a taint":        `{"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}`,
		"cordoning":      `{"spec": {"unschedulable": true}}`,
		"a generation":   `{"metadata": {"generation": 99}}`,
		"field managers": `{"metadata": {"managedFields": [{}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			after, err := patchStatus(t.Context(), api, id, patch)
			wantAnswer(t, err, reporter.Policy(), "")
			if !reflect.DeepEqual(after, before) {
				t.Errorf("it is not without effect: %+v", after)
			}
		})
	}
}

func limitedToTheStatusOfItsNode(t *testing.T, reporter admission.Reporter, api kubernetes.Interface, id string) {
	ctx, nodes, dryRun := t.Context(), api.CoreV1().Nodes(), []string{metav1.DryRunAll}
	node, err := nodes.Get(ctx, id, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := nodes.Get(ctx, id+"-other", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stripped := node.DeepCopy()
	stripped.Status.Images = nil
	patch := func(name, body string) error {
		return second(nodes.Patch(ctx, name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{DryRun: dryRun}))
	}
	apply := func(conditionType string) error {
		body := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q}, "status": {"conditions": [%s]}}`, id, condition(conditionType, `"status": "False"`))
		options := metav1.PatchOptions{DryRun: dryRun, FieldManager: "reporter", Force: new(true)}
		return second(nodes.Patch(ctx, id, types.ApplyYAMLPatchType, []byte(body), options, "status"))
	}
	report := reports(condition(reporter.Types[0], `"status": "True"`))
	elsewhere := "this account may write the node that its pod runs on, " + id + ", and not " + other.Name
	const only = "a reporter may patch or update nodes/status, and do nothing else to nodes"
	for name, tc := range map[string]struct {
		answer  error
		refusal string
	}{
		"reading its node":                    {second(nodes.Get(ctx, id, metav1.GetOptions{})), ""},
		"replacing its status by itself":      {second(nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{DryRun: dryRun})), ""},
		"replacing it by one without images":  {second(nodes.UpdateStatus(ctx, stripped, metav1.UpdateOptions{DryRun: dryRun})), "and not status.images"},
		"applying its condition":              {apply(reporter.Types[0]), ""},
		"applying the condition of a kubelet": {apply("Ready"), "remove Ready"},
		"reporting on another node":           {second(patchStatus(ctx, api, other.Name, report, dryRun...)), elsewhere},
		"nothing on another node":             {second(patchStatus(ctx, api, other.Name, `{}`, dryRun...)), elsewhere},
		"replacing the status of another":     {second(nodes.UpdateStatus(ctx, other, metav1.UpdateOptions{DryRun: dryRun})), elsewhere},
		"reporting through nodes":             {patch(id, report), only},
		"nothing through nodes":               {patch(id, `{}`), only},
		"a taint":                             {patch(id, `{"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}`), only},
		"cordoning":                           {patch(id, `{"spec": {"unschedulable": true}}`), only},
		"a label":                             {patch(id, `{"metadata": {"labels": {"a": "b"}}}`), only},
		"replacing its node":                  {second(nodes.Update(ctx, node, metav1.UpdateOptions{DryRun: dryRun})), only},
		"creating a node":                     {second(nodes.Create(ctx, testenv.Node(id+"-new", nil), metav1.CreateOptions{DryRun: dryRun})), only},
		"deleting its node":                   {nodes.Delete(ctx, id, metav1.DeleteOptions{DryRun: dryRun}), only},
		"deleting another node":               {nodes.Delete(ctx, other.Name, metav1.DeleteOptions{DryRun: dryRun}), only},
		"deleting many nodes":                 {nodes.DeleteCollection(ctx, metav1.DeleteOptions{DryRun: dryRun}, metav1.ListOptions{LabelSelector: "example.com/test=" + id}), only},
		"reaching a kubelet":                  {api.CoreV1().RESTClient().Get().Resource("nodes").Name(id).SubResource("proxy").Do(ctx).Error(), only},
	} {
		t.Run(name, func(t *testing.T) { wantAnswer(t, tc.answer, reporter.Policy(), tc.refusal) })
	}
}

func limitedToATokenOfANode(t *testing.T, c *testenv.Cluster, reporter admission.Reporter, id string) {
	unbound := loose(t, c, reporter.Namespace, reporter.Account)
	const names = "the token contains no node name, so the node of the account is not known: use the token that the kubelet mounts into the pod"
	for name, body := range map[string]string{"reporting": reports(condition(reporter.Types[0], `"status": "True"`)), "nothing": `{}`} {
		_, err := patchStatus(t.Context(), unbound, id, body, metav1.DryRunAll)
		t.Run(name, func(t *testing.T) { wantAnswer(t, err, reporter.Policy(), names) })
	}
}

// otherAccountsAreNotLimited: the same account name in another namespace is another account.
func otherAccountsAreNotLimited(t *testing.T, c *testenv.Cluster, reporter admission.Reporter, id string) {
	namesake := newReporter(t, c, nameOf(t))
	neighbour := reporter
	neighbour.Account += "-two"
	newAccount(t, c, neighbour.Namespace, neighbour.Account)
	for _, other := range []admission.Reporter{namesake, neighbour} {
		grant(t, c, "cluster-admin", userOf(other.Namespace, other.Account))
		for token, api := range map[string]kubernetes.Interface{
			"loose": loose(t, c, other.Namespace, other.Account), "of a node": onNode(t, c, other.Namespace, other.Account, id),
		} {
			ctx, dryRun := t.Context(), []string{metav1.DryRunAll}
			for name, err := range map[string]error{
				"a status": second(patchStatus(ctx, api, id+"-other", `{"metadata": {"labels": {"a": "b"}}, "status": {"conditions": null}}`, dryRun...)),
				"a node":   second(api.CoreV1().Nodes().Create(ctx, testenv.Node(id+"-new", nil), metav1.CreateOptions{DryRun: dryRun})),
				"deleting": api.CoreV1().Nodes().Delete(ctx, id, metav1.DeleteOptions{DryRun: dryRun}),
			} {
				if err != nil {
					t.Errorf("%s/%s with a token %s: %s: %v", other.Namespace, other.Account, token, name, err)
				}
			}
		}
	}
}

// The own-node policy limits an account that is shared with a network plugin to its node, and no further.
func TestSharedAccountIsLimitedToItsNode(t *testing.T) {
	t.Parallel()
	c, id := cluster(t), nameOf(t)
	other := id + "-other"
	c.Create(t, busyNode(id, id))
	c.Create(t, busyNode(other, id))
	plugin := newReporter(t, c, id)
	grant(t, c, "cluster-admin", userOf(plugin.Namespace, plugin.Account))
	api, unbound := onNode(t, c, plugin.Namespace, plugin.Account, id), loose(t, c, plugin.Namespace, plugin.Account)
	held := admission.OwnNode(plugin.Namespace, plugin.Account)
	enforce(t, c, held, admission.OwnNodeBinding(plugin.Namespace, plugin.Account), func(ctx context.Context) error {
		return second(patchStatus(ctx, api, other, `{}`, metav1.DryRunAll))
	})
	ctx, nodes, dryRun := t.Context(), api.CoreV1().Nodes(), []string{metav1.DryRunAll}
	label := func(node string) error {
		return second(nodes.Patch(ctx, node, types.MergePatchType, []byte(`{"metadata": {"labels": {"a": "b"}}}`), metav1.PatchOptions{DryRun: dryRun}))
	}
	elsewhere := "this account may write the node that its pod runs on, " + id + ", and not " + other
	everything := `{"metadata": {"labels": {"a": "b"}}, "status": {"images": [], "conditions": [` + condition("Ready", `"status": "False"`) + `]}}`
	for name, tc := range map[string]struct {
		answer  error
		refusal string
	}{
		"everything in its status":      {second(patchStatus(ctx, api, id, everything, dryRun...)), ""},
		"its status removed":            {second(patchStatus(ctx, api, id, `{"status": null}`, dryRun...)), ""},
		"the status of another":         {second(patchStatus(ctx, api, other, everything, dryRun...)), elsewhere},
		"its status with a loose token": {second(patchStatus(ctx, unbound, id, everything, dryRun...)), "the token contains no node name"},
		"a label on its node":           {label(id), ""},
		"a label on another":            {label(other), ""},
		"creating a node":               {second(nodes.Create(ctx, testenv.Node(id+"-new", nil), metav1.CreateOptions{DryRun: dryRun})), ""},
		"deleting another":              {nodes.Delete(ctx, other, metav1.DeleteOptions{DryRun: dryRun}), ""},
		"another's status by an admin":  {second(patchStatus(ctx, clientOf(t, c.Config), other, everything, dryRun...)), ""},
	} {
		t.Run(name, func(t *testing.T) { wantAnswer(t, tc.answer, held, tc.refusal) })
	}
}

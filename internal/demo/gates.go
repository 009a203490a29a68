package demo

import (
	"context"
	"maps"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/scenario"
)

// setHealth changes a component of a node.
func (d *player) setHealth(ctx context.Context, change *scenario.HealthChange) {
	if d.podComponents.sets(change.Component) {
		d.podComponents.setHealth(ctx, change.Node, change.Component, change.Is)
		return
	}
	d.endpoints.setHealth(change.Node, change.Component, change.Is)
}

// podRules are the rules for pods, by name.
func (d *player) podRules(ctx context.Context) map[string]scenario.RuleState {
	if !d.script.gatesPods() {
		return nil
	}
	var list podv1alpha1.PodReadinessRuleList
	if d.client.List(ctx, &list) != nil {
		return nil // the next poll lists again
	}
	states := map[string]scenario.RuleState{}
	for i := range list.Items {
		states[list.Items[i].Name] = podRuleState(&list.Items[i])
	}
	return states
}

// podRuleState is the state in the condition Enforced: as for nodes, its reason is Enforced, or why not.
func podRuleState(rule *podv1alpha1.PodReadinessRule) scenario.RuleState {
	enforced := meta.FindStatusCondition(rule.Status.Conditions, podv1alpha1.ConditionEnforced)
	if enforced == nil || enforced.ObservedGeneration != rule.Generation {
		return scenario.RuleState{Standing: "Unknown", Message: "the manager has not looked at it yet"}
	}
	return scenario.RuleState{Standing: enforced.Reason, Message: enforced.Message}
}

// whyPod is the explanation of the first pod of a Deployment on a node, as one text.
func (d *player) whyPod(ctx context.Context, deploy, node string) (string, error) {
	pods, err := d.podsOf(ctx, deploy, node)
	if err != nil {
		return "", err
	}
	story, err := d.source.PodStory(ctx, Namespace, pods[0].Name, time.Now)
	if err != nil {
		return "", err
	}
	said := []string{story.Headline + "."}
	for _, chapter := range story.Chapters {
		said = append(said, "Gate "+chapter.Name+" "+chapter.Text+".")
	}
	for _, event := range story.Events {
		said = append(said, event.Note+".")
	}
	return strings.Join(append(said, story.Next...), " "), nil
}

// gatedAtCreation asks the API server by a dry run whether a pod with these labels would be created with a gate.
func (d *player) gatedAtCreation(ctx context.Context, labels map[string]string) (bool, error) {
	template := podTemplate("readygate-dry-run", nil)
	maps.Copy(template.Labels, labels)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "readygate-dry-run", Labels: template.Labels}, Spec: template.Spec}
	if err := d.client.Create(ctx, pod, client.DryRunAll); err != nil {
		return false, err
	}
	return len(pod.Spec.ReadinessGates) > 0, nil
}

// bootFile is where agents look for the boot of their node.
const bootFile = "/proc/sys/kernel/random/boot_id"

// bootID is that of a node that joins. Agents of the demo run on this machine, and see its boot: where
// there are any, the nodes have that one, too.
func (d *player) bootID() string {
	if !d.script.gatesPods() {
		return string(uuid.NewUUID())
	}
	id, err := os.ReadFile(bootFile)
	if err != nil {
		return "" // agents do not know it either
	}
	return strings.TrimSpace(string(id))
}

package chart_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/podrule"
)

// notes are what Helm prints after an installation.
func notes(t *testing.T, values string) string {
	t.Helper()
	out, err := runHelm(t, "helm", values, nil, "install", release, chartDir(), "--namespace", namespace, "-f", "-", "--dry-run=client")
	if err != nil {
		t.Fatal(err)
	}
	_, notes, found := strings.Cut(out, "\nNOTES:\n")
	if !found {
		t.Fatalf("there are no notes in:\n%s", out)
	}
	return notes
}

// TestNotesWarn of what a user may not have meant, and of nothing else.
func TestNotesWarn(t *testing.T) {
	const (
		noReporter, noNetwork, noPlace, noCRD, noCleanup = "No reporter is installed", "manager.hostNetwork is false", "manager.tolerations does not", "crds.install is false", "cleanup.enabled is false"
		switchedOff, noPolicy                            = "taintNewNodes.enabled is false", "has no MutatingAdmissionPolicy"
		byHand                                           = "policies.managed is false"
		noGates, noPodgate                               = "podgate.enabled is true, but", "podgate.enabled is false, but"
	)
	for values, want := range map[string][]string{
		"":                       {noReporter},
		"reporters: [" + a + "]": {},
		withPodgate:              {noReporter},
		ci(t, "full"):            {noNetwork},
		ci(t, "small"):           {noReporter, switchedOff, noCRD, noCleanup},

		"policies: {managed: false}":                                  {noReporter, byHand},
		"policies: {managed: false}\ntaintNewNodes: {enabled: false}": {noReporter, switchedOff},

		"manager: {tolerations: []}": {noReporter, noPlace},
		"manager: {tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]}": {noReporter, noPlace},
		"manager: {tolerations: [{operator: Exists, effect: NoSchedule}]}":                         {noReporter, noPlace},
		"manager: {tolerations: [{key: a, value: b}, {operator: Exists}]}":                         {noReporter},
	} {
		out := notes(t, values)
		for _, warning := range []string{noReporter, noNetwork, noPlace, noCRD, noCleanup, switchedOff, noPolicy, byHand, noGates, noPodgate} {
			if strings.Contains(out, warning) != slices.Contains(want, warning) {
				t.Errorf("with %q: it warns %q: %v", values, warning, !slices.Contains(want, warning))
			}
		}
		if check := "kubectl -n " + namespace + " rollout status deployment/readygate-manager"; !strings.Contains(out, check) {
			t.Errorf("with %q: it does not say how to see whether the manager runs", values)
		}
	}
}

// TestNotesCanBePasted: a shell hands kubectl the rules, and does not wait for their end.
func TestNotesCanBePasted(t *testing.T) {
	out := notes(t, ci(t, "reporters")+withPodgate)
	forNodes, out, _ := strings.Cut(out, "kubectl get nrr")
	forPods, _, _ := strings.Cut(out, "kubectl get prr")
	rule := get[*v1alpha1.NodeReadinessRule](t, pasted(t, forNodes), "network")
	if rule.Spec.Conditions[0].Type != "cilium.io/AgentReady" {
		t.Errorf("the rule waits for %s", rule.Spec.Conditions[0].Type)
	}
	if podrule.NewRule(get[*podv1alpha1.PodReadinessRule](t, pasted(t, forPods), "network")).Components[0].Kind != podrule.Reach {
		t.Errorf("the rule for pods is not that of the notes:\n%s", forPods)
	}
}

// pasted is what a shell hands kubectl to apply.
func pasted(t *testing.T, text string) objects {
	t.Helper()
	from := strings.Index(text, "kubectl apply")
	if from < 0 {
		t.Fatalf("it does not say what is next:\n%s", text)
	}
	out, err := exec.CommandContext(t.Context(), "bash", "-c", "kubectl() { cat; }\n"+text[from:]).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return decode(t, string(out))
}

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

// notes returns what Helm prints after an installation.
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

// TestNotesWarn: the notes warn about values with an effect that users may not expect, and about nothing else.
func TestNotesWarn(t *testing.T) {
	const (
		noReporter, noNetwork, noTolerations, noCRD, noCleanup = "No reporter is installed", "manager.hostNetwork is false", "manager.tolerations does not", "crds.install is false", "cleanup.enabled is false"
		untainted, noPolicy                                    = "taintNewNodes.enabled is false", "does not serve MutatingAdmissionPolicy"
		unmanaged                                              = "policies.managed is false"
		noGates, noPodgate                                     = "podgate.enabled is true, but", "podgate.enabled is false, but"
	)
	for values, want := range map[string][]string{
		"":                       {noReporter},
		"reporters: [" + a + "]": {},
		withPodgate:              {noReporter},
		ci(t, "full"):            {noNetwork},
		ci(t, "small"):           {noReporter, untainted, noCRD, noCleanup},

		"policies: {managed: false}":                                  {noReporter, unmanaged},
		"policies: {managed: false}\ntaintNewNodes: {enabled: false}": {noReporter, untainted},

		"manager: {tolerations: []}": {noReporter, noTolerations},
		"manager: {tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]}": {noReporter, noTolerations},
		"manager: {tolerations: [{operator: Exists, effect: NoSchedule}]}":                         {noReporter, noTolerations},
		"manager: {tolerations: [{key: a, value: b}, {operator: Exists}]}":                         {noReporter},
	} {
		out := notes(t, values)
		for _, warning := range []string{noReporter, noNetwork, noTolerations, noCRD, noCleanup, untainted, noPolicy, unmanaged, noGates, noPodgate} {
			if strings.Contains(out, warning) != slices.Contains(want, warning) {
				t.Errorf("with %q: the notes contain the warning %q: %v", values, warning, !slices.Contains(want, warning))
			}
		}
		if check := "kubectl -n " + namespace + " rollout status deployment/readygate-manager"; !strings.Contains(out, check) {
			t.Errorf("with %q: the notes do not show how to check that the manager runs", values)
		}
	}
}

// TestNotesCanBePasted: a shell passes the rules to kubectl and does not wait for more input.
func TestNotesCanBePasted(t *testing.T) {
	out := notes(t, ci(t, "reporters")+withPodgate)
	forNodes, out, _ := strings.Cut(out, "kubectl get nrr")
	forPods, _, _ := strings.Cut(out, "kubectl get prr")
	rule := get[*v1alpha1.NodeReadinessRule](t, pasted(t, forNodes), "network")
	if rule.Spec.Conditions[0].Type != "cilium.io/AgentReady" {
		t.Errorf("the rule requires %s", rule.Spec.Conditions[0].Type)
	}
	if podrule.NewRule(get[*podv1alpha1.PodReadinessRule](t, pasted(t, forPods), "network")).Components[0].Kind != podrule.Reach {
		t.Errorf("the PodReadinessRule does not require reach:\n%s", forPods)
	}
}

// pasted returns what a shell passes to kubectl apply.
func pasted(t *testing.T, text string) objects {
	t.Helper()
	from := strings.Index(text, "kubectl apply")
	if from < 0 {
		t.Fatalf("the notes contain no kubectl apply:\n%s", text)
	}
	out, err := exec.CommandContext(t.Context(), "bash", "-c", "kubectl() { cat; }\n"+text[from:]).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return decode(t, string(out))
}

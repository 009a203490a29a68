package demo_test

import (
	"strings"
	"testing"

	"github.com/readygate/readygate/internal/demo"
)

// KWOK would make a node Ready that is away for a reboot, and take its bootID.
func TestKWOKLeavesANodeAloneThatIsAway(t *testing.T) {
	_, stage, _ := strings.Cut(demo.KWOKConfig, "name: node-ready\n")
	stage, _, found := strings.Cut(stage, "\n---\n")
	if !found {
		t.Fatal("there is no stage node-ready")
	}
	for _, want := range []string{
		`- key: .metadata.annotations["` + demo.AwayAnnotation + `"]` + "\n        operator: DoesNotExist",
		"bootID: {{ .status.nodeInfo.bootID | Quote }}",
	} {
		if !strings.Contains(stage, want) {
			t.Errorf("the stage node-ready has no\n%s", want)
		}
	}
}

// KWOK must do with gates what a kubelet does, and nothing with pods that have none.
func TestKWOKLetsAPodBeReadyOnlyWithItsGates(t *testing.T) {
	const all = `all(.spec.readinessGates[].conditionType; . as $gate | any($all[]; .type == $gate and .status == "True"))'` + "\n        operator: In\n        values: "
	for name, want := range map[string][]string{
		"pod-running": {`{{ $true := list "Initialized" "ContainersReady" "Ready" }}`, "{{ if .spec.readinessGates }}", `list "PodReadyToStartContainers" "Initialized" "ContainersReady"`, "podIP:"},
		"pod-ready":   {"- key: .spec.readinessGates\n        operator: Exists", all + `["true"]`, `select( .type == "ContainersReady" )`, "status: \"True\""},
		"pod-unready": {all + `["false"]`, "status: \"False\""},
	} {
		_, stage, _ := strings.Cut(demo.KWOKConfig, "name: "+name+"\n")
		stage, _, found := strings.Cut(stage, "\n---\n")
		if !found {
			t.Fatalf("there is no stage %s", name)
		}
		for _, text := range want {
			if !strings.Contains(stage, text) {
				t.Errorf("the stage %s has no\n%s", name, text)
			}
		}
		if strings.Contains(stage, ".conditionType | Quote") {
			t.Errorf("the stage %s opens gates", name)
		}
	}
}

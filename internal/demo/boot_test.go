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

package plugin_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/internal/plugin"
)

// The time of a dump is the last heartbeat of most nodes: one node whose clock is ahead does not make all others stale.
func TestTimeOfADumpIgnoresAHeartbeatThatIsAhead(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		beats []time.Duration // after noon
		want  time.Duration
	}{
		"all agree":             {[]time.Duration{-4 * time.Minute, -time.Minute, 0}, 0},
		"one is ahead":          {[]time.Duration{-4 * time.Minute, 0, time.Hour}, 0},
		"one is dead":           {[]time.Duration{-time.Hour, 0, -time.Minute}, 0},
		"one alone":             {[]time.Duration{0}, 0},
		"no two agree":          {[]time.Duration{-time.Hour, 0}, 0},
		"most are dead by then": {[]time.Duration{-3 * time.Hour, -2 * time.Hour, -time.Minute, 0}, 0},
	} {
		var nodes []*corev1.Node
		for _, beat := range test.beats {
			n := &corev1.Node{}
			n.Status.Conditions = []corev1.NodeCondition{{Type: "A"}, {Type: corev1.NodeReady, LastHeartbeatTime: metav1.NewTime(noon.Add(beat))}}
			nodes = append(nodes, n)
		}
		if got := plugin.LastHeartbeat(nodes); !got.Equal(noon.Add(test.want)) {
			t.Errorf("%s: the dump is of %v, want %v", name, got, noon.Add(test.want))
		}
	}
	if got := plugin.LastHeartbeat([]*corev1.Node{{}}); !got.IsZero() {
		t.Errorf("nodes without heartbeats are of %v", got)
	}
}

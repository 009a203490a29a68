package podgate

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/core/podrule"
)

// What an agent says of itself leads to another agent, and nowhere else.
func TestPeers(t *testing.T) {
	for address, want := range map[string]bool{
		"http://10.1.0.2:9479":             true,
		"http://[fd00::2]:9479":            true,
		"":                                 false,
		"http://10.1.0.2":                  false,
		"https://10.1.0.2:9479":            false,
		"http://10.1.0.2:9479/path":        false,
		"http://10.1.0.2:9479?x=y":         false,
		"http://user@10.1.0.2:9479":        false,
		"http://169.254.169.254:80":        false,
		"http://127.0.0.1:9479":            false,
		"http://metadata.internal:80":      false,
		"http://10.1.0.2:9479#fragment":    false,
		"http://224.0.0.1:9479":            false,
		"ftp://10.1.0.2:9479":              false,
		"http://10.1.0.2:9479@10.1.0.3:80": false,
	} {
		if got := isPeer(address); got != want {
			t.Errorf("%q is a peer: %v", address, got)
		}
	}
}

func TestWhereOthersFindTheAgent(t *testing.T) {
	node := &corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "n1"}, {Type: corev1.NodeInternalIP, Address: "10.1.0.2"}}}}
	for bind, want := range map[string]string{
		":9479":        "http://10.1.0.2:9479",
		"0.0.0.0:9479": "http://10.1.0.2:9479",
		"10.1.0.3:80":  "http://10.1.0.3:80",
		"9479":         "",
	} {
		if got := peerURL(bind, node); got != want {
			t.Errorf("one that listens on %q is at %q, want %q", bind, got, want)
		}
	}
	if got := peerURL(":9479", nil); got != "" {
		t.Errorf("without a node it is at %q", got)
	}
}

func TestBootTime(t *testing.T) {
	for stat, want := range map[string]time.Time{
		"cpu 1 2 3\nbtime 1000000000\nprocesses 5\n": time.Unix(1e9, 0),
		"cpu 1 2 3\n":     {},
		"btime soon\n":    {},
		"notbtime 1000\n": {},
	} {
		if got := bootTime(stat); !got.Equal(want) {
			t.Errorf("%q tells %v", stat, got)
		}
	}
}

// Nothing that a decision looks at is lost when a pod is cut down.
func TestStripKeepsWhatDecisionsNeed(t *testing.T) {
	class := "kata"
	pod := sandboxed("10.0.0.7", time.Unix(1e9, 0))
	pod.Annotations = map[string]string{"readygate.dev/gates": "g", "readygate.dev/latch": "k", "foreign": "x"}
	pod.Spec = corev1.PodSpec{
		NodeName: "n1", ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "g"}}, RuntimeClassName: &class, HostNetwork: true, OS: &corev1.PodOS{Name: corev1.Windows},
		NodeSelector: map[string]string{corev1.LabelOSStable: "windows", "x": "y"}, InitContainers: []corev1.Container{{Name: "other"}, {Name: "readygate-latch", Image: "i"}},
	}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "other"}, {Name: "readygate-latch", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	kept := strip(pod)
	if !podrule.LatchEnded(kept) {
		t.Errorf("the end of the latch is lost: %+v", kept.Status)
	}
	if !podrule.HasLatch(kept) || podrule.Eligible(kept) || podrule.SandboxSince(kept).IsZero() || kept.Spec.RuntimeClassName == nil || len(kept.Annotations) != 2 || kept.Status.PodIP == "" || len(kept.Spec.ReadinessGates) != 1 {
		t.Errorf("it is %+v", kept)
	}
	kept.Spec.HostNetwork, kept.Spec.OS = false, nil
	if podrule.Eligible(kept) {
		t.Error("that it is for nodes with Windows is lost")
	}
}

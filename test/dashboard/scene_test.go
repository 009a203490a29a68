package dashboard_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/plugin/view"
)

// scene is a fleet of 300 nodes with growing pools, a slow GPU driver and a failed agent. It is deterministic.
type scene struct {
	fleet  *live.Fleet
	random *rand.Rand
	start  time.Time
	behind atomic.Int64 // how far the clock of the scene is behind that of the machine
	left   []arrival
}

// arrival is a node that joins during the scene, and the time until it is ready.
type arrival struct {
	name         string
	after, takes time.Duration
	gpu, stuck   bool
}

const (
	calico  = "projectcalico.org/CalicoReady"
	csi     = "example.com/StorageDriverReady"
	nvidia  = "nvidia.com/GPUDriverReady"
	falcon  = "example.com/SecurityAgentReady"
	lasting = 55 * time.Minute
)

func newScene() *scene {
	s := &scene{random: rand.New(rand.NewPCG(3, 7)), start: time.Now().Add(-lasting)}
	s.behind.Store(int64(lasting))
	s.fleet = live.NewFleet(s.now)
	s.fleet.Put(s.rules()...)
	for i := range 3 {
		s.fleet.Put(joined(fmt.Sprintf("control-plane-%d", i+1), s.start.Add(-40*24*time.Hour)).Node)
	}
	for i := range 200 {
		s.join(arrival{name: fmt.Sprintf("worker-%03d", i+1), after: -time.Duration(1+i) * 4 * time.Hour, takes: s.takes(25)})
	}
	for i := range 18 {
		s.join(arrival{name: fmt.Sprintf("gpu-%02d", i+1), after: -time.Duration(1+i) * 5 * time.Hour, takes: s.takes(140), gpu: true})
	}
	for i := range 45 {
		s.left = append(s.left, arrival{name: fmt.Sprintf("worker-%03d", 201+i), after: 12*time.Minute + time.Duration(i)*9*time.Second, takes: 2*time.Minute + s.takes(60)})
	}
	for i := range 10 {
		s.left = append(s.left, arrival{name: fmt.Sprintf("gpu-%02d", 19+i), after: 34*time.Minute + time.Duration(i)*20*time.Second, takes: 5*time.Minute + s.takes(200), gpu: true, stuck: i == 4 || i == 7})
	}
	for i := range 24 {
		s.left = append(s.left, arrival{name: fmt.Sprintf("worker-%03d", 246+i), after: 51*time.Minute + time.Duration(i)*9*time.Second, takes: 3*time.Minute + s.takes(80)})
	}
	return s
}

func (s *scene) now() time.Time { return time.Now().Add(-time.Duration(s.behind.Load())) }

// takes returns a random time around this number of seconds, with a long tail.
func (s *scene) takes(around float64) time.Duration {
	return time.Duration(around * (0.5 + s.random.ExpFloat64()*0.6) * float64(time.Second))
}

// advance advances the time of the scene and updates the fleet.
func (s *scene) advance(by time.Duration) {
	s.behind.Add(-int64(by))
	at := s.now().Sub(s.start)
	waiting := s.left[:0]
	for _, a := range s.left {
		if a.after <= at {
			s.join(a)
		}
		if a.after > at || a.stuck || a.after+a.takes > at {
			waiting = append(waiting, a)
		}
	}
	s.left = waiting
}

// join adds a node with its current state.
func (s *scene) join(a arrival) {
	created := s.start.Add(a.after)
	ready := !a.stuck && !s.now().Before(created.Add(a.takes))
	m := joined(a.name, created)
	m.released("storage-driver", csi, a.takes/3)
	m.Annotations[v1alpha1.CompletedPrefix+"uid-storage-driver"] = `{"rule-name":"storage-driver"}`
	m.Labels["security-agent"] = "yes"
	switch {
	case ready:
		m.released("network", calico, a.takes/2)
		if a.gpu {
			m.released("gpu-driver", nvidia, a.takes)
		} else {
			m.Status.Conditions[len(m.Status.Conditions)-1].LastTransitionTime = metav1.NewTime(created.Add(a.takes))
		}
	case a.gpu:
		m.released("network", calico, time.Minute).held("gpu-driver")
		m.says(nvidia, corev1.ConditionFalse, "DriverInitFailed", "nvidia-smi: failed to initialize NVML: driver/library version mismatch", created.Add(70*time.Second))
	default:
		m.held("network").says(calico, corev1.ConditionFalse, "EndpointUnavailable", "GET http://localhost:9099/readiness: 503", created.Add(8*time.Second))
	}
	for i := range m.Status.Conditions {
		m.Status.Conditions[i].LastHeartbeatTime = metav1.NewTime(s.start.Add(lasting))
	}
	if a.name == "worker-087" {
		m.Status.Conditions[0].Status = corev1.ConditionUnknown
	}
	s.fleet.Put(m.Node)
}

func (s *scene) rules() []client.Object {
	dryRun := func(r *v1alpha1.NodeReadinessRule) {
		r.Spec.DryRun = true
		r.Status.DryRunResults = &v1alpha1.DryRunResults{Summary: "would put the taint on 297 nodes"}
	}
	once := func(r *v1alpha1.NodeReadinessRule) { r.Spec.EnforcementMode = v1alpha1.EnforcementModeBootstrapOnly }
	later := func(r *v1alpha1.NodeReadinessRule) {
		r.Status.Conditions[2].Status, r.Status.Conditions[2].Reason = metav1.ConditionFalse, v1alpha1.ReasonLabelNotSetByKubelet
	}
	due := func(r *v1alpha1.NodeReadinessRule) { r.Spec.ProgressDeadlineSeconds = ptr.To[int32](900) }
	days := func(n int) time.Time { return s.start.Add(-time.Duration(n) * 24 * time.Hour) }
	return []client.Object{
		made("network", calico, days(60)),
		made("storage-driver", csi, days(45), once),
		made("gpu-driver", nvidia, days(30), later, due),
		made("security-agent", falcon, days(1), dryRun),
	}
}

// explanation adds the writer of a condition, and events, as in a real cluster.
func (s *scene) explanation(ctx context.Context, node string) (view.Explanation, error) {
	explanation, _ := s.fleet.Explanation(ctx, node)
	for i := range explanation.Chapters {
		for j := range explanation.Chapters[i].Requirements {
			r := &explanation.Chapters[i].Requirements[j]
			if !r.Absent {
				r.Writer = "readygate-reporter"
			}
		}
	}
	explanation.Events = append(explanation.Events, view.Event{At: explanation.Created, Type: "Normal", Reason: "TaintAdded", Note: "Taint readiness.k8s.io/gpu-driver:NoSchedule added by rule gpu-driver"})
	return explanation, nil
}

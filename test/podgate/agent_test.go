package podgate_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/agents"
	"github.com/readygate/readygate/internal/podgate"
	"github.com/readygate/readygate/internal/testenv"
)

// agent is the agent of a node, running in this process.
type agent struct {
	// holder is its name in the lease.
	holder  string
	metrics *prometheus.Registry
	// stop ends it, and returns when it has ended.
	stop func()
}

// identity returns a client configuration of a node's agent, with a token that is bound to its pod.
func (s *stage) identity(node string) *rest.Config {
	s.t.Helper()
	if config, ok := s.configs[node]; ok {
		return rest.CopyConfig(config)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: admission.ManagerNamespace, Name: "podgate-" + node},
		Spec: corev1.PodSpec{
			NodeName: node, HostNetwork: true, ServiceAccountName: admission.PodgateAccount, Containers: []corev1.Container{{Name: "podgate", Image: latchImage}},
		},
	}
	s.createPod(pod)
	config := rest.AnonymousClientConfig(s.Config)
	config.BearerToken = s.Token(s.t, admission.ManagerNamespace, admission.PodgateAccount, pod)
	s.configs[node] = config
	return rest.CopyConfig(config)
}

// agentOptions returns the options of an agent of the node without endpoints.
func (s *stage) agentOptions(node string) *podgate.Options {
	s.t.Helper()
	*s.agents++
	options := podgate.NewOptions()
	options.Node, options.Holder, options.RestConfig = node, fmt.Sprintf("agent-%d", *s.agents), s.identity(node)
	options.MetricsAddr, options.HealthAddr = "0", "0"
	return options
}

// startAgent starts the agent of the stage's node, and waits for its lease.
func (s *stage) startAgent(change ...func(*podgate.Options)) *agent {
	s.t.Helper()
	options := s.agentOptions(s.id)
	for _, f := range change {
		f(options)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- options.Run(ctx) }()
	a := &agent{holder: options.Holder, metrics: options.Registry, stop: sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("the agent ended: %v", err)
		}
	})}
	s.t.Cleanup(func() { _ = s.Client.Delete(context.Background(), s.newLease(options.Node)) })
	s.t.Cleanup(a.stop)
	s.wantReport(a, "there", func(agents.Report) bool { return true })
	return a
}

// newLease is the lease of a node's agent, not created yet.
func (s *stage) newLease(node string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: agents.Namespace, Name: agents.Name(node), Labels: agents.Labels()}}
}

// wantReport waits until the report of the agent matches.
func (s *stage) wantReport(a *agent, what string, check func(agents.Report) bool) {
	s.t.Helper()
	testenv.Eventually(s.t, "a report of "+a.holder+": "+what, func(ctx context.Context) error {
		lease := s.newLease(s.id)
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
			return err
		}
		if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != a.holder {
			return fmt.Errorf("the lease is of %s", holder)
		}
		if !check(agents.ReportOf(lease)) {
			return fmt.Errorf("the report is %s", lease.Annotations[agents.ReportAnnotation])
		}
		return nil
	})
}

// wantDecided waits until the agent reports these numbers of open and waiting pods of a rule: it has reconciled
// all of them then, and has written the changes.
func (s *stage) wantDecided(a *agent, rule types.UID, open, waiting int) {
	s.t.Helper()
	s.wantReport(a, fmt.Sprintf("%d open, %d waiting", open, waiting), func(r agents.Report) bool {
		return r.Rules[rule].Open == open && r.Rules[rule].Waiting == waiting
	})
}

// follow records every change of a gate from now on.
func (s *stage) follow(pod *corev1.Pod, gate string) func() []string {
	s.t.Helper()
	changes, err := s.Client.Watch(s.t.Context(), &corev1.PodList{}, client.InNamespace(pod.Namespace), client.MatchingFields{"metadata.name": pod.Name})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(changes.Stop)
	var mu sync.Mutex
	var seen []string
	go func() {
		for change := range changes.ResultChan() {
			if now, ok := change.Object.(*corev1.Pod); ok {
				mu.Lock()
				seen = append(seen, gateOf(now, gate))
				mu.Unlock()
			}
		}
	}()
	history := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Compact(slices.Clone(seen))
	}
	testenv.Eventually(s.t, "a first look at "+pod.Name, func(context.Context) error {
		if len(history()) == 0 {
			return errors.New("nothing seen yet")
		}
		return nil
	})
	return history
}

// An agent whose port is in use exits with an error, instead of running without its endpoints.
func TestAnAgentThatCannotListenEnds(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // only its port matters
	options := s.agentOptions(s.id)
	options.MetricsAddr, options.HealthAddr = "127.0.0.1:0", taken.Addr().String()
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { done <- options.Run(ctx) }()
	testenv.Eventually(t, "the agent to end", func(context.Context) error {
		select {
		case err = <-done:
			return nil
		default:
			return errors.New("it runs on")
		}
	})
	if err == nil || !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Errorf("the error is %v, want that %s is in use", err, taken.Addr())
	}
}

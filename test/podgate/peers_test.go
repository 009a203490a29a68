package podgate_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/podgate"
)

// mayAskPeers lets agents do what the chart lets them do with podgate.peer.enabled.
func (s *stage) mayAskPeers() {
	s.t.Helper()
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: admission.ManagerNamespace, Name: admission.PodgateAccount}}
	inside, everywhere := metav1.ObjectMeta{Namespace: admission.ManagerNamespace, Name: s.id}, metav1.ObjectMeta{Name: s.id}
	role := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: s.id}
	}
	s.Create(s.t, &rbacv1.ClusterRole{ObjectMeta: everywhere, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}}}})
	s.Create(s.t, &rbacv1.ClusterRoleBinding{ObjectMeta: everywhere, Subjects: subjects, RoleRef: role("ClusterRole")})
	s.Create(s.t, &rbacv1.Role{ObjectMeta: inside, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"list"}}}})
	s.Create(s.t, &rbacv1.RoleBinding{ObjectMeta: inside, Subjects: subjects, RoleRef: role("Role")})
}

// tokenFor is a file with a token of the agents' account for an audience.
func (s *stage) tokenFor(audience string) string {
	s.t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: admission.ManagerNamespace, Name: admission.PodgateAccount}}
	if err := s.Client.SubResource("token").Create(s.t.Context(), account, request); err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(s.t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(request.Status.Token), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// port is one of this machine's network that others can reach, and nobody has taken.
func port(t *testing.T) string {
	t.Helper()
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range own {
		network, ok := one.(*net.IPNet)
		if !ok || !network.IP.IsGlobalUnicast() {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort(network.IP.String(), "0"))
		if err != nil {
			continue
		}
		defer listener.Close() //nolint:errcheck // it has its address
		return listener.Addr().String()
	}
	t.Skip("this machine has no address but loopback")
	return ""
}

// Agents find each other by their leases and know each other by their tokens. The peer is asked here
// about an address of its own machine, which it refuses to one that it knows only.
func TestAgentsKnowEachOther(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.mayAskPeers()
	other := s.id + "-other"
	s.node(other)
	peer := s.agentOptions(other)
	peer.PeerAddr, peer.PeerToken = port(t), s.tokenFor("readygate-podgate")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- peer.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the peer ended: %v", err)
		}
		_ = s.Client.Delete(context.Background(), s.newLease(other))
	})

	rule := s.rule("far", components(v1alpha1.Component{Name: "far", Reach: &v1alpha1.ReachComponent{From: v1alpha1.ReachFromPeer}}))
	s.enforce(rule)
	pod := s.pod("far")
	s.sandbox(pod, "127.0.8.2", longAgo())
	for audience, words := range map[string]string{"readygate-podgate": "a peer answered 400", "somebody-else": "a peer answered 401"} {
		agent := s.startAgent(func(o *podgate.Options) { o.PeerAddr, o.PeerToken = "127.0.0.1:0", s.tokenFor(audience) })
		s.wantGate(pod, rule.Spec.Gate, waits, words)
		agent.stop()
	}
}

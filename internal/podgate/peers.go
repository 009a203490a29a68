package podgate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/readygate/readygate/internal/agentlease"
	"github.com/readygate/readygate/internal/policy"
)

// peerAudience is the audience of the tokens by which agents know each other. The API server does not
// take them: who sees one on the wire can ask agents whether they reach an address, and no more.
const peerAudience = "readygate-podgate"

// peersLast is how long the list of peers is used before it is read again.
const peersLast = time.Minute

// peers are the agents of other nodes.
type peers struct {
	api       kubernetes.Interface
	node      string
	tokenFile string

	mu    sync.Mutex
	known []string
	read  time.Time
}

// addresses are where other agents that are alive can be asked. They are found in the leases.
func (p *peers) addresses() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.read) < peersLast {
		return p.known
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	selector := policy.PartOfLabel + "=" + policy.PartOf + "," + agentlease.ComponentLabel + "=" + agentlease.Component
	p.read = time.Now() // whatever becomes of it
	leases, err := p.api.CoordinationV1().Leases(agentlease.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"})
	if err != nil {
		return p.known
	}
	p.known = nil
	for i := range leases.Items {
		lease := &leases.Items[i]
		node, ok := agentlease.NodeOf(lease)
		if address := agentlease.ReportOf(lease).Address; ok && node != p.node && isPeer(address) && renewedLately(lease) {
			p.known = append(p.known, address)
		}
	}
	return p.known
}

// isPeer says whether an address that an agent tells of itself is one that others may ask: one on a
// network, and nothing that leads elsewhere.
func isPeer(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.Port() == "" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsGlobalUnicast()
}

// renewedLately leaves out agents that have not been heard for long. One that is asked in vain does no
// harm, so clocks need not agree.
func renewedLately(lease *coordinationv1.Lease) bool {
	return lease.Spec.RenewTime != nil && time.Since(lease.Spec.RenewTime.Time) < 10*agentlease.Lasts
}

func (p *peers) token() (string, error) { return trimmed(p.tokenFile) }

// authorize lets agents ask, and nobody else.
func (p *peers) authorize(ctx context.Context, token string) error {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{peerAudience}}}
	answer, err := p.api.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("asking the API server whose token it is: %w", err)
	case !answer.Status.Authenticated:
		return errors.New("the token is not valid")
	case answer.Status.User.Username != policy.PodgateUser:
		return fmt.Errorf("the token is of %s, must be of %s", answer.Status.User.Username, policy.PodgateUser)
	}
	return nil
}

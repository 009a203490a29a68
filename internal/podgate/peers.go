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

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/agents"
	"github.com/readygate/readygate/internal/paging"
	"github.com/readygate/readygate/internal/podgate/probe"
)

// peerAudience is the audience of the tokens by which agents know each other. The API server does not
// take them: who sees one on the wire can ask agents whether they reach an address, and no more.
const peerAudience = "readygate-podgate"

const (
	// leasesPage is how many leases are listed at a time.
	leasesPage = 500
	// enoughPeers is how many are enough to pick a few at random: no further page is read. In a very
	// large cluster those are the first ones by name; a list by every agent of all others would cost
	// the square of their number.
	enoughPeers = 100
)

// peers are the agents of other nodes.
type peers struct {
	api       kubernetes.Interface
	node      string
	tokenFile string

	once sync.Once
	seen *tokens
}

// addresses are where other agents that are alive can be asked; enough of them, if there are many. They
// are found in the leases.
func (p *peers) addresses(ctx context.Context) ([]string, error) {
	labels := admission.PartOfLabel + "=" + admission.PartOf + "," + agents.ComponentLabel + "=" + agents.Component
	var found []string
	for leases, err := range paging.Pages(func(token string) (*coordinationv1.LeaseList, error) {
		return p.api.CoordinationV1().Leases(agents.Namespace).List(ctx, metav1.ListOptions{Limit: leasesPage, LabelSelector: labels, Continue: token})
	}) {
		if err != nil {
			return nil, fmt.Errorf("listing the leases of other agents: %w", err)
		}
		for i := range leases.Items {
			if address, ok := p.addressOf(&leases.Items[i]); ok {
				found = append(found, address)
			}
		}
		if len(found) >= enoughPeers {
			break
		}
	}
	return found, nil
}

// addressOf is where the agent that keeps a lease can be asked; false if it cannot.
func (p *peers) addressOf(lease *coordinationv1.Lease) (string, bool) {
	if node, ok := agents.NodeOf(lease); !ok || node == p.node || !renewedLately(lease) {
		return "", false
	}
	address := agents.ReportOf(lease).Address
	return address, isPeer(address)
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
	return lease.Spec.RenewTime != nil && time.Since(lease.Spec.RenewTime.Time) < 10*agents.Lasts
}

func (p *peers) token() (string, error) { return trimmed(p.tokenFile) }

// authorize lets agents ask, and nobody else.
func (p *peers) authorize(ctx context.Context, token string) error {
	p.once.Do(func() { p.seen = newTokens(p.review) })
	return p.seen.check(ctx, token)
}

// review has the API server say whether a token is that of an agent.
func (p *peers) review(ctx context.Context, token string) error {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{peerAudience}}}
	answer, err := p.api.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("%w: asking the API server: %w", probe.ErrNotNow, err)
	case !answer.Status.Authenticated:
		return errors.New("the token is not valid")
	case answer.Status.User.Username != admission.PodgateUser:
		return fmt.Errorf("the token is of %s, must be of %s", answer.Status.User.Username, admission.PodgateUser)
	}
	return nil
}

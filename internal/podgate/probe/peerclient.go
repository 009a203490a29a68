package probe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/readygate/readygate/internal/core/podrule"
)

const (
	// maxPeers is how many peers are asked about one address.
	maxPeers = 2
	// peerLimit is how long one of them may take: it tries for a second itself. The second one has
	// what is left of the question's own limit; a yes does not take long.
	peerLimit = reachLimit + 250*time.Millisecond
)

// PeerClient asks the agents of other nodes. It may be used by many at a time.
//
// The token goes to every address. Over plain HTTP whoever sees the packets sees the token, so it
// should be one for this purpose only: with an audience of its own.
type PeerClient struct {
	// Addresses lists where the agents of other nodes are, as URLs without a path, e.g.
	// http://10.1.0.2:9479. It is called seldom: a few of them are remembered.
	Addresses func(context.Context) ([]string, error)
	// Token is the token that peers are shown.
	Token func() (string, error)
	// Client sends the questions; it follows no redirects. nil: one that takes no proxy from the
	// environment and keeps few connections.
	Client *http.Client

	known handful
	turn  atomic.Uint32
}

// betweenNodes is the client where none is given.
var betweenNodes = &http.Client{
	Transport: &http.Transport{
		DialContext:            (&net.Dialer{Timeout: peerLimit}).DialContext,
		TLSHandshakeTimeout:    peerLimit,
		MaxIdleConns:           8,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        30 * time.Second,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
	},
	CheckRedirect: stay,
}

// stay keeps a client from following a redirect: the token is for peers.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Reach says whether another node reaches an address: one that does is enough. Others are asked next
// time, so the answer does not say who was asked, nor what exactly each said.
func (c *PeerClient) Reach(ctx context.Context, address string) podrule.Answer {
	peers, why := c.pick(ctx)
	if len(peers) == 0 {
		return no(why)
	}
	token, err := c.Token()
	if err != nil {
		return no("no peer was asked: the agent's own token cannot be read")
	}
	var said, refused string
	for _, peer := range peers {
		answer, err := c.ask(ctx, peer, token, address)
		if err != nil && ctx.Err() == nil { // else it had no time
			c.known.fail(peer)
		}
		var status statusError
		switch {
		case errors.Is(ctx.Err(), context.Canceled):
			return no(givenUp)
		case err == nil && answer.Reached:
			return yes
		case err == nil:
			said = "another node does not reach it"
		case errors.As(err, &status):
			refused = status.Error()
		}
		slog.DebugContext(ctx, "a peer did not reach a pod", "peer", peer, "address", address, "why", answer.Why, "error", err)
	}
	return no(cmp.Or(said, refused, "no peer answered"))
}

// pick picks who is asked, by turns, and says why nobody is.
func (c *PeerClient) pick(ctx context.Context) ([]string, string) {
	known, err := c.known.peers(ctx, c.Addresses)
	switch {
	case len(known) > 0:
	case err != nil:
		slog.DebugContext(ctx, "no peer is known", "error", err)
		return nil, "no peer: the agents of other nodes have not been listed"
	default:
		return nil, "no peer: no other node has an agent"
	}
	picked := make([]string, min(len(known), maxPeers))
	turn := c.turn.Add(1)
	for i := range picked {
		picked[i] = known[(turn+uint32(i))%uint32(len(known))]
	}
	return picked, ""
}

// statusError is the status of a peer that does not answer the question.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("a peer answered %d", int(e)) }

// ask asks one peer.
func (c *PeerClient) ask(ctx context.Context, peer, token, address string) (peerAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, peerLimit)
	defer cancel()
	body, err := json.Marshal(peerQuestion{Address: address})
	if err != nil {
		return peerAnswer{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(peer, "/")+PeerPath, bytes.NewReader(body))
	if err != nil {
		return peerAnswer{}, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", userAgent())
	response, err := c.client().Do(request)
	if err != nil {
		return peerAnswer{}, err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	content, err := io.ReadAll(io.LimitReader(response.Body, maxMessage))
	switch {
	case response.StatusCode != http.StatusOK:
		return peerAnswer{}, statusError(response.StatusCode)
	case err != nil:
		return peerAnswer{}, err
	}
	var answer peerAnswer
	err = json.Unmarshal(content, &answer)
	return answer, err
}

func (c *PeerClient) client() *http.Client {
	if c.Client == nil {
		return betweenNodes
	}
	client := *c.Client
	client.CheckRedirect = stay
	return &client
}

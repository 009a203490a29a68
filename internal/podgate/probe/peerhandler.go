package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
)

// maxAsked is how many questions of peers are answered at a time.
const maxAsked = 16

// ErrNotNow is what an error of Authorize wraps if it does not refuse the token, but cannot find out
// now whose it is. Who asked may ask again.
var ErrNotNow = errors.New("whose token it is cannot be found out now")

// PeerHandler answers the agents of other nodes whether this node reaches a pod. It tells a peer
// nothing else, and cannot be used against this node: an address that leads to the node itself is
// refused. It is for a server with a ReadTimeout of a few seconds.
type PeerHandler struct {
	// Authorize says whether a token is that of a peer. nil: nobody's is. Everybody can make it look
	// at any number of tokens at a time: it must bound itself what that costs.
	Authorize func(ctx context.Context, token string) error
	// Dial opens connections to pods. nil: as a net.Dialer does.
	Dial DialFunc
	// Own are the addresses of this node. nil: those of its interfaces.
	Own func() ([]net.Addr, error)

	asked atomic.Int32
}

// refusal is why a question is not answered.
type refusal struct {
	status int
	words  string
}

func (r *refusal) write(w http.ResponseWriter) {
	switch r.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodPost)
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, r.words, r.status)
}

// ServeHTTP answers one question. One that is refused takes no place: who has no token cannot keep
// peers out.
func (h *PeerHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	address, refused := h.question(w, r)
	if refused != nil {
		refused.write(w)
		return
	}
	defer h.asked.Add(-1)
	if h.asked.Add(1) > maxAsked {
		refused = &refusal{http.StatusServiceUnavailable, fmt.Sprintf("more than %d questions at a time: ask again", maxAsked)}
		refused.write(w)
		return
	}
	answer := reach(r.Context(), h.Dial, address)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(peerAnswer{Reached: answer.Yes, Why: answer.Why}) // who hung up does not want it
}

// question is the address that a peer asks about, if it may.
func (h *PeerHandler) question(w http.ResponseWriter, r *http.Request) (string, *refusal) {
	switch {
	case r.URL.Path != PeerPath:
		return "", &refusal{http.StatusNotFound, "only " + PeerPath + " is here"}
	case r.Method != http.MethodPost:
		return "", &refusal{http.StatusMethodNotAllowed, "only POST: send {\"address\":\"10.244.1.7:9\"}"}
	}
	if refused := h.stranger(r); refused != nil {
		return "", refused
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return "", &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("the question is too long, must be at most %d bytes", maxMessage)}
	}
	var asked peerQuestion
	if err != nil || json.Unmarshal(body, &asked) != nil {
		return "", &refusal{http.StatusBadRequest, "the question cannot be read, must be as {\"address\":\"10.244.1.7:9\"}"}
	}
	return asked.Address, h.refuse(asked.Address)
}

// stranger refuses a request that does not have the token of a peer. nil: it has.
func (h *PeerHandler) stranger(r *http.Request) *refusal {
	unknown := &refusal{http.StatusUnauthorized, "the token is missing, or not that of an agent: send Authorization: Bearer and the token"}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if h.Authorize == nil || token == "" || !strings.EqualFold(scheme, "Bearer") {
		return unknown
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	switch err := h.Authorize(ctx, token); {
	case errors.Is(err, ErrNotNow):
		return &refusal{http.StatusServiceUnavailable, ErrNotNow.Error() + ": ask again"}
	case err != nil:
		return unknown
	}
	return nil
}

// refuse says why an address is not tried: one that every node has for itself proves nothing about a
// pod, and tells what listens on this node. nil: it is.
func (h *PeerHandler) refuse(address string) *refusal {
	where, err := netip.ParseAddrPort(address)
	ip := where.Addr().Unmap()
	if err != nil || where.Port() == 0 || ip.Zone() != "" {
		return wrongAddress(address, "no IP address with a port")
	}
	switch {
	case ip.IsUnspecified():
		return wrongAddress(address, "an unspecified address")
	case ip.IsLoopback():
		return wrongAddress(address, "a loopback address")
	case ip.IsLinkLocalUnicast():
		return wrongAddress(address, "a link-local address")
	case ip.IsMulticast():
		return wrongAddress(address, "a multicast address")
	}
	own, err := h.own()
	switch {
	case err != nil:
		return &refusal{http.StatusInternalServerError, "the addresses of this node cannot be read"}
	case slices.ContainsFunc(own, func(one net.Addr) bool { return isAddress(one, ip) }):
		return wrongAddress(address, "an address of this node itself")
	}
	return nil
}

func wrongAddress(address, is string) *refusal {
	return &refusal{http.StatusBadRequest, fmt.Sprintf("address is %.64q, which is %s: must be that of a pod, e.g. 10.244.1.7:9", address, is)}
}

func (h *PeerHandler) own() ([]net.Addr, error) {
	if h.Own != nil {
		return h.Own()
	}
	return net.InterfaceAddrs()
}

func isAddress(one net.Addr, ip netip.Addr) bool {
	network, ok := one.(*net.IPNet)
	if !ok {
		return false
	}
	is, _ := netip.AddrFromSlice(network.IP)
	return is.Unmap() == ip
}

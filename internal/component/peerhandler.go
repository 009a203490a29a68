package component

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

// PeerHandler answers the agents of other nodes whether this node reaches a pod. It tells a peer
// nothing else, and cannot be used against this node: an address that leads to the node itself is
// refused. It is for a server with a ReadTimeout of a few seconds.
type PeerHandler struct {
	// Authorize says whether a token is that of a peer. nil: nobody's is.
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

// ServeHTTP answers one question. Questions are counted before their tokens are looked at, which may
// cost a request to the API server.
func (h *PeerHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer h.asked.Add(-1)
	if h.asked.Add(1) > maxAsked {
		w.Header().Set("Retry-After", "1")
		http.Error(w, fmt.Sprintf("more than %d questions at a time: ask again", maxAsked), http.StatusServiceUnavailable)
		return
	}
	address, refused := h.question(w, r)
	if refused != nil {
		http.Error(w, refused.words, refused.status)
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
		w.Header().Set("Allow", http.MethodPost)
		return "", &refusal{http.StatusMethodNotAllowed, "only POST: send {\"address\":\"10.244.1.7:9\"}"}
	case !h.authorized(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		return "", &refusal{http.StatusUnauthorized, "the token is missing, or not that of an agent: send Authorization: Bearer and the token"}
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

// authorized says whether a request has the token of a peer.
func (h *PeerHandler) authorized(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if h.Authorize == nil || token == "" || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	return h.Authorize(ctx, token) == nil
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

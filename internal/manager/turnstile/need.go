package turnstile

import (
	"net/http"
	"strconv"
	"strings"
)

// need says how much a request is needed: lower values go first.
type need int

const (
	// node is a request about one node: what holds or releases it.
	node need = iota
	// other is what is neither about a node nor an event: rules, policies, lists.
	other
	// event tells of what was done, and may come late.
	event

	// needs is how many there are.
	needs
)

func (n need) String() string { return [needs]string{"node", "other", "event"}[n] }

// needOf tells by the path, which may begin with a prefix where the server is behind another.
func needOf(req *http.Request) need {
	switch path := req.URL.Path; {
	case strings.Contains(path, "/api/v1/nodes/"):
		return node
	case strings.Contains(path, "/apis/events.k8s.io/"):
		return event
	default:
		return other
	}
}

// isWatch says whether the answer to the request lasts.
func isWatch(req *http.Request) bool {
	if !strings.Contains(req.URL.RawQuery, "watch=") {
		return false // nearly always: the query need not be parsed
	}
	watch, err := strconv.ParseBool(req.URL.Query().Get("watch"))
	return err == nil && watch
}

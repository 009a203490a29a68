package nodestatus

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// NodeOf is the name of the node of the pod that the connection's token was made for; empty
// if the token does not name one (before Kubernetes 1.30, or one that is bound to no pod).
//
// The token is not verified: it is our own, and the API server decides what it is worth.
func (c Connection) NodeOf() string {
	token, err := c.token()
	if err != nil {
		return ""
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	var claims struct {
		Kubernetes struct {
			Node struct {
				Name string `json:"name"`
			} `json:"node"`
		} `json:"kubernetes.io"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return ""
	}
	return claims.Kubernetes.Node.Name
}

package nodestatus

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// NodeOf returns the node of the pod that the connection's token is bound to; empty
// if the token names no node (before Kubernetes 1.30, or not bound to a pod).
//
// The token is not verified: it is the reporter's own, and the API server verifies it.
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

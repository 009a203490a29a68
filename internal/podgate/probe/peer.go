package probe

// PeerPath is where an agent answers its peers: a POST of {"address":"10.244.1.7:9"} with a bearer
// token is answered with {"reached":true}, or with {"reached":false,"why":"no answer within 1s"}.
const PeerPath = "/v1/reach"

// maxMessage is how long a question to a peer, and its answer, may be.
const maxMessage = 1 << 10

// peerQuestion is what a peer is asked.
type peerQuestion struct {
	// Address is the IP address and the port to reach.
	Address string `json:"address"`
}

// peerAnswer is what it answers.
type peerAnswer struct {
	Reached bool `json:"reached"`
	// Why is why not.
	Why string `json:"why,omitempty"`
}

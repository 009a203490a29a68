package check

import "time"

// ServingOf is the decoder of a gRPC health answer.
var ServingOf = servingOf

// SetClock gives a peers check another clock.
func SetClock(c Check, now func() time.Time) { c.(*peersCheck).now = now }

// SetServices gives a peers check other Services.
func SetServices(c Check, ready, everyone string) {
	peers := c.(*peersCheck)
	peers.ready, peers.everyone = ready, everyone
}

// IsNoEndpoint reports whether an error means that there is no peer.
var IsNoEndpoint = isNoEndpoint

// NewDialer opens the connections of one run.
var NewDialer = newDialer

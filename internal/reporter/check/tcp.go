package check

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// TCP opens a connection and closes it. An accepted connection is healthy.
type TCP struct {
	// address is host and port, e.g. localhost:6784 or [::1]:6784.
	Address string `json:"address"`
}

type tcpCheck struct {
	address string
	env     Env
}

func (t *TCP) check(env Env) (Check, error) {
	if err := addressFits("address", t.Address); err != nil {
		return nil, err
	}
	return tcpCheck{t.Address, env}, nil
}

func addressFits(field, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return wrong(field, "is %q, must be host:port, e.g. localhost:6784", address)
	}
	if err := portInRange(port); err != nil {
		return wrong(field, "is %q: %v", address, err)
	}
	return nil
}

func portInRange(text string) error {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return fmt.Errorf("the port is %q, must be a number from 1 to 65535", text)
	}
	return nil
}

func (c tcpCheck) Run(ctx context.Context) Observation {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.address)
	if err != nil {
		return noAnswer(c.address, err, c.env)
	}
	_ = conn.Close()
	return healthy(ReasonEndpointOK, c.address+" accepts connections")
}

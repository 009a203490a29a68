package check

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// GRPC calls the gRPC health protocol (grpc.health.v1.Health/Check).
type GRPC struct {
	// address is host and port, e.g. localhost:9879, or a socket, e.g. unix:///run/agent.sock.
	Address string `json:"address"`
	// service is the name of the service to check. Absent: the server as a whole.
	Service string `json:"service,omitempty"`
	// tls encrypts the connection. Absent: it is not encrypted.
	TLS *TLS `json:"tls,omitempty"`
}

// grpcCheck implements the call with the HTTP/2 client of the standard library: the request is one field, the
// response one number, and a gRPC library would double the size of the reporter.
type grpcCheck struct {
	spec    *GRPC
	socket  string // path of the Unix socket; empty: TCP
	request []byte
	env     Env
}

func (g *GRPC) check(env Env) (Check, error) {
	c := &grpcCheck{spec: g, request: healthRequest(g.Service), env: env}
	if path, isSocket := strings.CutPrefix(g.Address, "unix://"); isSocket {
		c.socket = path
		if !filepath.IsAbs(path) {
			return nil, wrong("address", "is %q, must name an absolute path, e.g. unix:///run/agent.sock", g.Address)
		}
	} else if err := addressFits("address", g.Address); err != nil {
		return nil, err
	}
	if g.TLS != nil {
		if err := g.TLS.validate(); err != nil {
			return nil, fmt.Errorf("tls.%w", err)
		}
	}
	return c, nil
}

// healthRequest returns a HealthCheckRequest as a gRPC message: no compression, length, bytes.
func healthRequest(service string) []byte {
	var message []byte
	if service != "" {
		message = protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), service)
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

func (c *grpcCheck) Run(ctx context.Context) Observation {
	requestWrite := int32(2) // after the HTTP/2 preface
	if c.spec.TLS != nil {
		requestWrite = 1 // the first write of TLS is enough
	}
	dial, closeAll := newDialer(ctx, requestWrite, c.socket)
	defer closeAll()
	client, err := c.client(dial)
	if err != nil {
		return failed(ReasonEndpointConnectionError, err.Error())
	}
	response, answer, err := c.ask(ctx, client) //nolint:bodyclose // ask has closed it
	if err != nil {
		return noAnswer(c.spec.Address, err, c.env)
	}
	return c.evaluate(response, answer)
}

func (c *grpcCheck) client(dial dialFunc) (*http.Client, error) {
	transport := &http.Transport{DialContext: dial, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10, Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP2(c.spec.TLS != nil)
	transport.Protocols.SetUnencryptedHTTP2(c.spec.TLS == nil)
	var err error
	if c.spec.TLS != nil {
		transport.TLSClientConfig, err = c.spec.TLS.config()
	}
	return &http.Client{Transport: transport, CheckRedirect: noRedirect}, err
}

// noRedirect makes a client return a redirect as the response.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// ask sends the request, and returns the response with its body.
func (c *grpcCheck) ask(ctx context.Context, client *http.Client) (*http.Response, []byte, error) {
	scheme, host := "http", c.spec.Address
	if c.spec.TLS != nil {
		scheme = "https"
	}
	if c.socket != "" {
		host = "localhost"
	}
	call := url.URL{Scheme: scheme, Host: host, Path: "/grpc.health.v1.Health/Check"}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, call.String(), bytes.NewReader(c.request))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("Te", "trailers")
	request.Header.Set("User-Agent", userAgent())
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	// A HealthCheckResponse has a few bytes; the trailers come after it.
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	return response, answer, err
}

// Codes of gRPC with a message of their own.
const (
	grpcOK            = "0"
	grpcNotFound      = "5"
	grpcUnimplemented = "12"
)

var servingStatus = map[uint64]string{0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}

func (c *grpcCheck) evaluate(response *http.Response, answer []byte) Observation {
	code := response.Trailer.Get("Grpc-Status")
	if code == "" {
		code = response.Header.Get("Grpc-Status") // a response without a message
	}
	target := c.spec.Address
	if c.spec.Service != "" {
		target += " service " + c.spec.Service
	}
	switch code {
	case grpcOK:
	case "":
		return failed(ReasonEndpointConnectionError, target+": the response is not gRPC")
	case grpcNotFound:
		return unhealthy(ReasonEndpointNotReady, target+": service not found")
	case grpcUnimplemented:
		return unhealthy(ReasonEndpointNotReady, target+" does not implement the gRPC health protocol")
	default:
		return unhealthy(ReasonEndpointNotReady, target+" returned a gRPC error")
	}
	status, err := servingOf(answer)
	if err != nil {
		return failed(ReasonEndpointConnectionError, target+": "+err.Error())
	}
	if status != 1 {
		return unhealthy(ReasonEndpointNotReady, target+" is "+servingStatus[status])
	}
	return healthy(ReasonEndpointOK, target+" is SERVING")
}

var errNotHealth = errors.New("the response is not of the gRPC health protocol")

// servingOf returns the status in a HealthCheckResponse; an absent status is 0.
func servingOf(answer []byte) (uint64, error) {
	if len(answer) < 5 || answer[0] != 0 || binary.BigEndian.Uint32(answer[1:5]) != uint32(len(answer)-5) {
		return 0, errNotHealth
	}
	var status uint64
	for fields := answer[5:]; len(fields) > 0; {
		number, kind, n := protowire.ConsumeTag(fields)
		if n < 0 || !number.IsValid() {
			return 0, errNotHealth
		}
		fields = fields[n:]
		if number == 1 && kind == protowire.VarintType {
			status, n = protowire.ConsumeVarint(fields)
		} else {
			n = protowire.ConsumeFieldValue(number, kind, fields)
		}
		if n < 0 {
			return 0, errNotHealth
		}
		fields = fields[n:]
	}
	if _, known := servingStatus[status]; !known {
		return 0, errNotHealth
	}
	return status, nil
}

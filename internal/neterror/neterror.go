// Package neterror describes connection errors in constant messages, without ports and addresses.
package neterror

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// Explain returns a short message for a failed request. It does not use the text of the error, which may contain local
// ports and addresses that differ each time.
func Explain(err error, timeout time.Duration) string {
	var (
		name      *net.DNSError
		unknown   x509.UnknownAuthorityError
		expired   x509.CertificateInvalidError
		other     x509.HostnameError
		plaintext tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "the name " + name.Name + " is unknown"
	case errors.As(err, &name):
		return "the name " + name.Name + " cannot be looked up"
	case errors.As(err, &unknown):
		return "the certificate is signed by an unknown authority: set caFile, or insecureSkipVerify"
	case errors.As(err, &expired):
		return "the certificate is not valid: " + invalid(expired)
	case errors.As(err, &other):
		return "the certificate is for another name: set serverName"
	case errors.As(err, &plaintext):
		return "the response is not TLS"
	}
	if _, alert, found := strings.Cut(err.Error(), "remote error: tls: "); found {
		return "TLS handshake failed, remote error: " + alert // one of a few constants
	}
	return explainSystem(err, timeout)
}

// closed is the message for every closed connection: whether the peer's close appears as an end or as a reset, and in a
// read or in a write, is random.
const closed = "connection closed without a response"

// systemErrors are system errors with a message.
var systemErrors = []struct {
	err   error
	words string
}{
	{syscall.ECONNREFUSED, "connection refused"},
	{syscall.ECONNRESET, closed},
	{syscall.EPIPE, closed},
	{syscall.EHOSTUNREACH, "no route to the host"},
	{syscall.ENETUNREACH, "no route to the network"},
	{syscall.EADDRNOTAVAIL, "the address is not available"},
	{os.ErrNotExist, "no such file"},
	{os.ErrPermission, "permission denied"},
	{io.EOF, closed},
	{io.ErrUnexpectedEOF, closed},
}

// untypedErrors are errors without a type, by a part of their text. The first match counts: some contain others.
var untypedErrors = []struct{ part, words string }{
	{"server gave HTTP response to HTTPS client", "the response is not TLS"},
	{"server response headers exceeded", "the response has too many headers"},
	{"server closed idle connection", closed},
	{"readLoopPeekFailLocked", "the response is not HTTP"}, // it came before the request
	{"malformed HTTP", "the response is not HTTP"},
	{"HTTP/1.x transport connection broken", "the response is not HTTP"},
	{"http2: client conn", closed},
	{"GOAWAY", closed},
	{"connection error: ", "the response is not HTTP/2"},
	{"http2:", "the response is not HTTP/2"},
	{"tls:", "TLS failed"},
}

func explainSystem(err error, timeout time.Duration) string {
	var waited net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &waited) && waited.Timeout() {
		return "no response within " + timeout.String()
	}
	for _, one := range systemErrors {
		if errors.Is(err, one.err) {
			return one.words
		}
	}
	for _, one := range untypedErrors {
		if strings.Contains(err.Error(), one.part) {
			return one.words
		}
	}
	return "no valid response"
}

func invalid(err x509.CertificateInvalidError) string {
	switch err.Reason {
	case x509.Expired:
		return "it has expired, or is not valid yet"
	case x509.NotAuthorizedToSign:
		return "its issuer may not sign"
	default:
		return "inspect it with openssl x509"
	}
}

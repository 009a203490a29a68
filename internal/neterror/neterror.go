// Package neterror describes errors of connections in plain words.
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

// Explain says in a few words why nobody answered. Errors of the network name ports and
// addresses of this side that differ each time, so their own words cannot be used.
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
		return "the certificate is of an unknown authority: set caFile, or insecureSkipVerify"
	case errors.As(err, &expired):
		return "the certificate is not valid: " + invalid(expired)
	case errors.As(err, &other):
		return "the certificate is for another name: set serverName"
	case errors.As(err, &plaintext):
		return "the answer is not TLS"
	}
	if _, alert, found := strings.Cut(err.Error(), "remote error: tls: "); found {
		return "TLS failed, they say: " + alert // one of a few fixed words
	}
	return explainSystem(err, timeout)
}

// closed is one for all that may come of it: it is chance whether a peer that hangs up is
// seen to end the connection or to reset it, while something is read or written.
const closed = "connection closed without an answer"

// told are errors of the system that have words of their own.
var told = []struct {
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

// spoken are errors that have no type. The first that fits counts: some contain others.
var spoken = []struct{ part, words string }{
	{"server gave HTTP response to HTTPS client", "the answer is not TLS"},
	{"server response headers exceeded", "the answer has too many headers"},
	{"server closed idle connection", closed},
	{"readLoopPeekFailLocked", "the answer is not HTTP"}, // it came before the question
	{"malformed HTTP", "the answer is not HTTP"},
	{"HTTP/1.x transport connection broken", "the answer is not HTTP"},
	{"http2: client conn", closed},
	{"GOAWAY", closed},
	{"connection error: ", "the answer is not HTTP/2"},
	{"http2:", "the answer is not HTTP/2"},
	{"tls:", "TLS failed"},
}

func explainSystem(err error, timeout time.Duration) string {
	var waited net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &waited) && waited.Timeout() {
		return "no answer within " + timeout.String()
	}
	for _, one := range told {
		if errors.Is(err, one.err) {
			return one.words
		}
	}
	for _, one := range spoken {
		if strings.Contains(err.Error(), one.part) {
			return one.words
		}
	}
	return "no answer that can be understood"
}

func invalid(err x509.CertificateInvalidError) string {
	switch err.Reason {
	case x509.Expired:
		return "it has expired, or is not valid yet"
	case x509.NotAuthorizedToSign:
		return "its issuer may not sign"
	default:
		return "look at it with openssl x509"
	}
}

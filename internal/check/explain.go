package check

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

// explain says in a few words why nobody answered. Errors of the network name ports and
// addresses of this side that differ each time, so their own words cannot be used.
func explain(err error, timeout time.Duration) string {
	var (
		name      *net.DNSError
		unknown   x509.UnknownAuthorityError
		expired   x509.CertificateInvalidError
		other     x509.HostnameError
		plaintext tls.RecordHeaderError
		alert     tls.AlertError
	)
	switch {
	case errors.Is(err, errElsewhere), errors.Is(err, errManyRedirects):
		return errors.Unwrap(err).Error()
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
	case errors.As(err, &alert):
		return "TLS failed: " + alert.Error()
	}
	return explainSystem(err, timeout)
}

// told are errors of the system that have words of their own.
var told = []struct {
	err   error
	words string
}{
	{syscall.ECONNREFUSED, "connection refused"},
	{syscall.ECONNRESET, "connection reset"},
	{syscall.EPIPE, "connection reset"},
	{syscall.EHOSTUNREACH, "no route to the host"},
	{syscall.ENETUNREACH, "no route to the network"},
	{syscall.EADDRNOTAVAIL, "the address is not available"},
	{os.ErrNotExist, "no such file"},
	{os.ErrPermission, "permission denied"},
	{io.EOF, "connection closed without an answer"},
	{io.ErrUnexpectedEOF, "connection closed in the middle of the answer"},
}

// spoken are errors that have no type.
var spoken = []struct{ part, words string }{
	{"server gave HTTP response to HTTPS client", "the answer is not TLS"},
	{"malformed HTTP", "the answer is not HTTP"},
	{"HTTP/1.x transport connection broken", "the answer is not HTTP"},
	{"server response headers exceeded", "the answer has too many headers"},
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

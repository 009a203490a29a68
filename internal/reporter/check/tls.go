package check

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
)

// TLS configures the verification of the server's certificate. Zero: the system's certificate authorities.
type TLS struct {
	// caFile is the path of a PEM file with the trusted certificate authorities, e.g. /etc/agent/ca.crt.
	// Every run reads it, so it may be replaced at any time. Absent: the system's authorities.
	CAFile string `json:"caFile,omitempty"`
	// serverName is the name that the certificate must have. Absent: the host of the request.
	ServerName string `json:"serverName,omitempty"`
	// insecureSkipVerify accepts any certificate. It is sufficient for a component on the same
	// node with a self-signed certificate. Absent: false.
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

func (t *TLS) validate() error {
	if t.CAFile != "" && !filepath.IsAbs(t.CAFile) {
		return wrong("caFile", "is %q, must be an absolute path, e.g. /etc/agent/ca.crt", t.CAFile)
	}
	if t.CAFile != "" && t.InsecureSkipVerify {
		return wrong("caFile", "is %q, which has no effect because insecureSkipVerify is true: remove one of them", t.CAFile)
	}
	return nil
}

func (t *TLS) config() (*tls.Config, error) {
	config := &tls.Config{
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.InsecureSkipVerify, //nolint:gosec // an explicit setting of the user
	}
	if t.CAFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, errors.New("caFile " + t.CAFile + " cannot be read: " + explainFile(err))
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("caFile " + t.CAFile + " contains no certificate")
	}
	return config, nil
}

package check

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
)

// TLS is how the server's certificate is verified. Zero: with the authorities of the system.
type TLS struct {
	// caFile is the path of a PEM file with the trusted authorities, e.g. /etc/agent/ca.crt.
	// It is read for every run, so it may be replaced at any time.
	CAFile string `json:"caFile,omitempty"`
	// serverName is the name to look for in the certificate. Absent: the host that is asked.
	ServerName string `json:"serverName,omitempty"`
	// insecureSkipVerify accepts any certificate. It is good enough for a component on the same
	// node that has made its certificate itself.
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

func (t *TLS) validate() error {
	if t.CAFile != "" && !filepath.IsAbs(t.CAFile) {
		return wrong("caFile", "is %q, must be an absolute path, e.g. /etc/agent/ca.crt", t.CAFile)
	}
	if t.CAFile != "" && t.InsecureSkipVerify {
		return wrong("caFile", "is %q, which has no effect because insecureSkipVerify is true: leave one of them", t.CAFile)
	}
	return nil
}

func (t *TLS) config() (*tls.Config, error) {
	config := &tls.Config{
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.InsecureSkipVerify, //nolint:gosec // the user asked for it, with an explicit field name
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
		return nil, errors.New("caFile " + t.CAFile + " holds no certificate")
	}
	return config, nil
}

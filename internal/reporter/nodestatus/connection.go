package nodestatus

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// AccountDir is where a pod finds the token of its service account.
const AccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// Connection is the address of the API server and the credentials. Files are read when they are needed,
// so that a token or certificate that was rotated is used from then on.
type Connection struct {
	server     string // as in https://10.96.0.1:443
	serverName string
	skipVerify bool
	ca         source // none: the authorities that the system knows
	bearer     source // the token of a service account
	cert, key  source // or a client certificate
}

// source is a text, or a file that holds it.
type source struct {
	text []byte
	file string
}

func (s source) isSet() bool { return s.file != "" || len(s.text) > 0 }

func (s source) read() ([]byte, error) {
	if s.file == "" {
		return s.text, nil
	}
	return os.ReadFile(s.file)
}

// InCluster is the connection of a pod, with the token in a directory, e.g. AccountDir.
func InCluster(host, port, dir string) (Connection, error) {
	if host == "" || port == "" {
		return Connection{}, errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: run in a pod, or give --kubeconfig=/etc/kubernetes/reporter.conf")
	}
	token := filepath.Join(dir, "token")
	if _, err := os.Stat(token); err != nil {
		return Connection{}, fmt.Errorf("the pod has no token of a service account (is automountServiceAccountToken false?): %w", err)
	}
	return Connection{
		server: "https://" + net.JoinHostPort(host, port),
		ca:     source{file: filepath.Join(dir, "ca.crt")},
		bearer: source{file: token},
	}, nil
}

func (c Connection) token() (string, error) {
	if !c.bearer.isSet() {
		return "", nil
	}
	token, err := c.bearer.read()
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	text := strings.TrimSpace(string(token))
	if text == "" {
		return "", errors.New("the token is empty: no anonymous request is sent")
	}
	return text, nil
}

// transport is HTTP/1.1: one request at a time needs no more, and it takes less memory.
func (c Connection) transport() (*http.Transport, error) {
	config, err := c.tls()
	if err != nil {
		return nil, err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: requestTimeout / 2, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: requestTimeout,
		MaxIdleConns:        1,
		Protocols:           protocols,
		ReadBufferSize:      2 << 10,
		WriteBufferSize:     2 << 10,
		DisableCompression:  true,
	}, nil
}

func (c Connection) tls() (*tls.Config, error) {
	config := &tls.Config{
		ServerName:         c.serverName,
		InsecureSkipVerify: c.skipVerify, //nolint:gosec // the kubeconfig asks for it
	}
	if c.ca.isSet() {
		pem, err := c.ca.read()
		if err != nil {
			return nil, fmt.Errorf("reading the authorities of the API server: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("the authorities of the API server hold no certificate")
		}
	}
	if !c.cert.isSet() {
		return config, nil
	}
	cert, errCert := c.cert.read()
	key, errKey := c.key.read()
	if err := errors.Join(errCert, errKey); err != nil {
		return nil, fmt.Errorf("reading the client certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

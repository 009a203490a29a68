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

// AccountDir is the directory of the service account token in a pod.
const AccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// Connection is the address of the API server and the credentials. Every use reads the files again,
// so a rotated token or certificate takes effect without a restart.
type Connection struct {
	server     string // e.g. https://10.96.0.1:443
	serverName string
	skipVerify bool
	ca         source // unset: the system's certificate authorities
	bearer     source // a bearer token
	cert, key  source // or a client certificate
}

// source is a text, or a file that contains it.
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

// InCluster returns the connection of a pod, with the token in a directory, e.g. AccountDir.
func InCluster(host, port, dir string) (Connection, error) {
	if host == "" || port == "" {
		return Connection{}, errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: run in a pod, or set --kubeconfig=/etc/kubernetes/reporter.conf")
	}
	token := filepath.Join(dir, "token")
	if _, err := os.Stat(token); err != nil {
		return Connection{}, fmt.Errorf("the pod has no service account token; check automountServiceAccountToken: %w", err)
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
		return "", errors.New("the token is empty, and the reporter sends no anonymous requests")
	}
	return text, nil
}

// transport returns an HTTP/1.1 transport: it sends one request at a time and takes less memory than HTTP/2.
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
		InsecureSkipVerify: c.skipVerify, //nolint:gosec // set in the kubeconfig
	}
	if c.ca.isSet() {
		pem, err := c.ca.read()
		if err != nil {
			return nil, fmt.Errorf("reading the CA certificates of the API server: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("the CA file of the API server contains no certificate")
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

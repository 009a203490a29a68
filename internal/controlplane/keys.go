package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// authority signs the certificate of the API server and those of its users.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

// newAuthority has an RSA key, with which the API server verifies the certificate of each request faster. The keys
// of servers and users are ECDSA, which is faster to generate and to sign with.
func newAuthority() (*authority, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "controlplane"}, key)
	if err != nil {
		return nil, err
	}
	return &authority{cert: ca, key: key, pem: encodeCert(ca.Raw)}, nil
}

// clientCert returns the certificate and key of this user.
func (a *authority) clientCert(user string, groups []string) ([]byte, []byte, error) {
	return a.issue(x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) issue(template x509.Certificate) ([]byte, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, nil, err
	}
	template.NotBefore = time.Now().Add(-time.Minute)
	template.NotAfter = time.Now().Add(24 * time.Hour)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, &template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("signing a certificate for %s: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	return encodeCert(der), keyPEM, err
}

func (c *ControlPlane) writeKeys() error {
	var err error
	if c.ca, err = newAuthority(); err != nil {
		return fmt.Errorf("making a certificate authority: %w", err)
	}
	addresses := []net.IP{net.ParseIP(loopback)}
	if n := c.opts.Network; n != nil {
		addresses = append(addresses, net.ParseIP(n.Address), net.ParseIP(n.ServiceAddress))
	}
	serverCert, serverKey, err := c.ca.issue(x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: addresses,
		DNSNames:    []string{"localhost", "kubernetes.default.svc"},
	})
	if err != nil {
		return err
	}
	kubeletCert, kubeletKey, err := c.ca.clientCert("kube-apiserver-kubelet-client", []string{adminGroup})
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"ca.crt": c.ca.pem, "apiserver.crt": serverCert, "apiserver.key": serverKey,
		"kubelet-client.crt": kubeletCert, "kubelet-client.key": kubeletKey,
	} {
		if err := os.WriteFile(c.file(name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}

package nodestatus_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/readygate/readygate/internal/reporter/nodestatus"
)

// apiServer is a server that records the last request, with a client for it.
type apiServer struct {
	*httptest.Server
	request *http.Request
	body    string
	dir     string
}

func newAPIServer(t testing.TB, answer http.HandlerFunc) *apiServer {
	t.Helper()
	s := &apiServer{dir: t.TempDir()}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.request, s.body = r, string(body)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	s.write(t, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	s.write(t, "token", "first\n")
	return s
}

func (s *apiServer) write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *apiServer) client(t testing.TB) *nodestatus.Client {
	t.Helper()
	host, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "https://"), ":")
	connection, err := nodestatus.InCluster(host, port, s.dir)
	if err != nil {
		t.Fatal(err)
	}
	return nodestatus.NewClient(connection, "n1")
}

func answer(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func TestLearnIsAPatchThatChangesNothing(t *testing.T) {
	s := newAPIServer(t, answer(`{"metadata": {"uid": "u", "labels": {"a": "b"}}, "status": {"images": [{}], "conditions": [
		{"type": "Ready", "status": "True"}, {"type": "a", "status": "False", "lastTransitionTime": "2026-03-01T00:00:00Z", "lastHeartbeatTime": null}]}}`))
	node, err := s.client(t).Learn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.body != "{}" || s.request.Method != http.MethodPatch || s.request.URL.Path != "/api/v1/nodes/n1/status" || s.request.Header.Get("Accept") != "application/json" {
		t.Errorf("it asks %s %s with %q", s.request.Method, s.request.URL, s.body)
	}
	condition, found := node.Condition("a")
	if !found || node.Metadata.UID != "u" || condition.Status != "False" || !condition.LastTransitionTime.Equal(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("it learns %+v", node)
	}
}

func TestReportSendsOwnConditionsAndRequestsMetadata(t *testing.T) {
	s := newAPIServer(t, answer(`{"kind": "PartialObjectMetadata", "metadata": {"uid": "u"}}`))
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	node, err := s.client(t).Report(t.Context(), []nodestatus.Condition{{Type: "a", Status: "True", Reason: "R", Message: "m", LastHeartbeatTime: at, LastTransitionTime: at}})
	if err != nil || node.Metadata.UID != "u" {
		t.Fatalf("%+v, %v", node, err)
	}
	const want = `{"status":{"conditions":[{"type":"a","status":"True","lastHeartbeatTime":"2026-03-01T00:00:00Z","lastTransitionTime":"2026-03-01T00:00:00Z","reason":"R","message":"m"}]}}`
	if s.body != want {
		t.Errorf("it sends\n%s\nwant\n%s", s.body, want)
	}
	for name, value := range map[string]string{
		"Accept":            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
		"Content-Type":      "application/strategic-merge-patch+json",
		"Authorization":     "Bearer first",
		"Impersonate-User":  "",
		"X-Idempotency-Key": "",
	} {
		if got := s.request.Header.Get(name); got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
}

func TestATokenThatWasRotatedIsUsed(t *testing.T) {
	s := newAPIServer(t, answer("{}"))
	client := s.client(t)
	client.AsNode = true
	for _, token := range []string{"first", "second"} {
		s.write(t, "token", token)
		if _, err := client.Learn(t.Context()); err != nil || s.request.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("with the token %s it sends %q, %v", token, s.request.Header.Get("Authorization"), err)
		}
	}
	if got := s.request.Header.Get("Impersonate-User"); got != "system:node:n1" {
		t.Errorf("it is %q", got)
	}
}

// With an empty token file the reporter sends no anonymous request.
func TestAnEmptyTokenIsNotSent(t *testing.T) {
	s := newAPIServer(t, answer("{}"))
	client := s.client(t)
	s.write(t, "token", "\n")
	if _, err := client.Learn(t.Context()); err == nil || s.request != nil {
		t.Errorf("it asks, with %v", err)
	}
}

// A replaced CA file is read again when the connection fails.
func TestAuthoritiesThatWereRotatedAreUsed(t *testing.T) {
	s := newAPIServer(t, answer("{}"))
	right, err := os.ReadFile(filepath.Join(s.dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "ca.crt", otherAuthority(t))
	client := s.client(t)
	if _, err := client.Learn(t.Context()); err == nil {
		t.Fatal("it accepts a certificate of another authority")
	}
	s.write(t, "ca.crt", string(right))
	if _, err := client.Learn(t.Context()); err != nil {
		t.Errorf("with the right authorities: %v", err)
	}
}

func TestAnErrorHasTheMessageOfTheAPIServer(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   nodestatus.StatusError
	}{
		"forbidden": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind": "Status", "message": "nodes \"n1\" is forbidden"}`)
		}, nodestatus.StatusError{Code: 403, Message: `nodes "n1" is forbidden`}},
		"too many requests": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, "slow down")
		}, nodestatus.StatusError{Code: 429, Message: "slow down", RetryAfter: 7 * time.Second}},
		"a redirect, which no token follows": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://example.invalid/", http.StatusTemporaryRedirect)
		}, nodestatus.StatusError{Code: 307}},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for range 1 << 14 {
				if _, err := io.WriteString(w, strings.Repeat("x", 1<<10)); err != nil {
					return
				}
			}
		}, nodestatus.StatusError{Code: 500, Message: strings.Repeat("x", 200)}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newAPIServer(t, tc.answer).client(t).Learn(t.Context())
			var got *nodestatus.StatusError
			if !errors.As(err, &got) || *got != tc.want {
				t.Errorf("got %v, want %+v", err, tc.want)
			}
		})
	}
}

func TestTheTokenNamesTheNode(t *testing.T) {
	s := newAPIServer(t, answer("{}"))
	jwt := func(claims string) string {
		encode := base64.RawURLEncoding.EncodeToString
		return encode([]byte(`{"alg": "none"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("signature"))
	}
	for token, want := range map[string]string{
		jwt(`{"kubernetes.io": {"namespace": "kube-system", "node": {"name": "n7", "uid": "u"}, "pod": {"name": "p"}}}`): "n7",
		jwt(`{"kubernetes.io": {"namespace": "kube-system"}}`):                                                           "",
		jwt(`not JSON`): "",
		"a.b.c":         "", "opaque": "", "": "",
	} {
		s.write(t, "token", token)
		connection, err := nodestatus.InCluster("h", "1", s.dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := connection.NodeOf(); got != want {
			t.Errorf("of %q the node is %q, want %q", token, got, want)
		}
	}
}

func TestTheErrorOfAnInvalidKubeconfigNamesTheReason(t *testing.T) {
	const base = "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: {server: \"https://h\"}}]\n"
	for text, want := range map[string]string{
		"{": "is not a kubeconfig",
		"":  `current-context is "", which is not in contexts`,
		"current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n":            `the context "c" names the cluster "k", which has no server`,
		strings.Replace(base, "https://h", "h:6443", 1) + "users: [{name: u, user: {token: t}}]": `the server of cluster "k" is "h:6443", must be a URL`,
		base: `the context "c" names the user "u", which is not in users`,
		base + "users: [{name: u, user: {exec: {command: aws}}}]": "the user has exec or auth-provider, which the reporter does not support",
	} {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := nodestatus.FromKubeconfig(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of %q it says %v, want %s", text, err, want)
		}
	}
}

func TestTheErrorOutsideOfAPodNamesTheFlag(t *testing.T) {
	if _, err := nodestatus.InCluster("", "", t.TempDir()); err == nil || !strings.Contains(err.Error(), "--kubeconfig=") {
		t.Errorf("it says %v", err)
	}
	if _, err := nodestatus.InCluster("h", "1", t.TempDir()); err == nil || !strings.Contains(err.Error(), "automountServiceAccountToken") {
		t.Errorf("it says %v", err)
	}
}

// A connection that the API server closed while idle causes no error.
func TestAClosedConnectionIsReplaced(t *testing.T) {
	s := newAPIServer(t, answer("{}"))
	client := s.client(t)
	for i := range 3 {
		if _, err := client.Learn(t.Context()); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		s.CloseClientConnections()
	}
}

// otherAuthority is an unused CA certificate.
func otherAuthority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

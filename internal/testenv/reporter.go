package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	_ "github.com/readygate/readygate/internal/reporter" // is in the binary: if it changes, no test result is still valid
)

// Pod creates a pod of the service account on the node; no kubelet runs it.
func (c *Cluster) Pod(t testing.TB, namespace, account, node string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account + "-" + node},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: account, Containers: []corev1.Container{{Name: "reporter", Image: "reporter"}},
		},
	}
	c.Create(t, pod)
	return pod
}

// Token returns a token of the service account, bound to the pod as the kubelet requests it; a nil pod: not bound.
func (c *Cluster) Token(t testing.TB, namespace, account string, pod *corev1.Pod) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := c.Client.SubResource("token").Create(t.Context(), owner, request); err != nil {
		t.Fatalf("requesting a token of %s: %v", account, err)
	}
	return request.Status.Token
}

// TokenKubeconfig writes a kubeconfig and, beside it, the file with the token of its user. It returns both paths.
func (c *Cluster) TokenKubeconfig(t testing.TB, token string) (kubeconfig, tokenFile string) {
	t.Helper()
	dir := t.TempDir()
	kubeconfig, tokenFile = filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "token")
	config := map[string]string{
		"ca.crt": string(c.Config.CAData),
		"token":  token,
		"kubeconfig": fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: it, user: it}}]
clusters: [{name: it, cluster: {server: %q, certificate-authority: ca.crt}}]
users: [{name: it, user: {tokenFile: token}}]
`, strings.TrimSuffix(c.Config.Host, "/")),
	}
	for name, content := range config {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return kubeconfig, tokenFile
}

// StartReporter starts the reporter's binary with this kubeconfig.
func StartReporter(t testing.TB, kubeconfig string, env []string, args ...string) *Process {
	t.Helper()
	metrics := FreeAddress(t)
	p := Start(t, "readygate-reporter", append([]string{"METRICS_BIND_ADDRESS=" + metrics}, env...), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	p.Health, p.Metrics = metrics, metrics
	return p
}

package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/testenv"
)

// user is a user at a shell.
type user struct{ home string }

// admin has all permissions.
func admin(t *testing.T, c *testenv.Cluster) user { return userOf(t, c.Config) }

func userOf(t *testing.T, config *rest.Config) user {
	t.Helper()
	u := user{home: t.TempDir()}
	if err := controlplane.WriteKubeconfig(filepath.Join(u.home, "kubeconfig"), config); err != nil {
		t.Fatal(err)
	}
	return u
}

// reader may only get, list and watch these resources.
func reader(t *testing.T, c *testenv.Cluster, resources ...string) user {
	t.Helper()
	name := testenv.NameOf(t) + "-" + strings.Join(resources, "-")
	c.Create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"", "readiness.node.x-k8s.io"}, Resources: resources, Verbs: []string{"get", "list", "watch"}},
	}})
	c.Create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})
	config, err := c.ControlPlane.Config(name)
	if err != nil {
		t.Fatal(err)
	}
	return userOf(t, config)
}

func (u user) command(t *testing.T, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = u.home
	cmd.Env = []string{"HOME=" + u.home, "KUBECONFIG=" + filepath.Join(u.home, "kubeconfig"), "PATH=" + plugin + ":" + testenv.Binaries() + ":" + os.Getenv("PATH")}
	return cmd
}

// answer is the result of a command.
type answer struct {
	code           int
	stdout, stderr string
}

func (u user) run(t *testing.T, program string, args ...string) answer {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := u.command(t, program, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("running %s: %v", program, err)
	}
	return answer{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// readiness runs the plugin.
func (u user) readiness(t *testing.T, args ...string) answer {
	t.Helper()
	return u.run(t, filepath.Join(plugin, "kubectl-readiness"), args...)
}

// expect fails unless the command ended with this code and printed all of these words.
func (a answer) expect(t *testing.T, code int, words ...string) {
	t.Helper()
	if a.code != code {
		t.Errorf("code %d, want %d", a.code, code)
	}
	for _, word := range words {
		if !strings.Contains(a.stdout+a.stderr, word) {
			t.Errorf("%q is missing", word)
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", a.stdout, a.stderr)
	}
}

// parse reads JSON.
func (a answer) parse(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.stdout), into); err != nil {
		t.Fatalf("no JSON: %v\n%s%s", err, a.stdout, a.stderr)
	}
}

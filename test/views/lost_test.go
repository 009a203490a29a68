package views_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/plugin"
	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/testenv"
)

// watchLines runs watch without a terminal, and returns a channel with its lines.
func watchLines(t *testing.T, c *testenv.Cluster, args ...string) <-chan string {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, c.Config); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	lines, ended := make(chan string, 1000), make(chan struct{})
	go func() {
		defer close(ended)
		streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: writer, ErrOut: writer}
		plugin.Run(ctx, streams, append([]string{"watch", "--kubeconfig", kubeconfig}, args...))
		_ = writer.Close()
	}()
	go func() {
		for scanner := bufio.NewScanner(reader); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return lines
}

// nextText returns the next line without its time.
func nextText(t *testing.T, lines <-chan string) string {
	t.Helper()
	select {
	case line := <-lines:
		_, text, _ := strings.Cut(line, " ")
		return text
	case <-time.After(2 * time.Minute):
		t.Fatal("watch prints nothing")
		return ""
	}
}

func lost(d live.Delta) bool { return d.Connection != nil && !d.Connection.Lost.IsZero() }

func back(d live.Delta) bool { return d.Connection != nil && d.Connection.Lost.IsZero() }

// While the connection is lost, old data must not be shown as current.
func TestLostClusterIsReportedUntilItIsBack(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	c.Create(t, testenv.Node("before", nil))
	fleet, err := source(t, c, "admin", administrators).Follow(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	follower, first := fleet.Follow()
	defer follower.Stop()
	if first.Connection != (live.Connection{}) {
		t.Errorf("lost from the start: %+v", first.Connection)
	}
	lines := watchLines(t, c)
	if got := nextText(t, lines); got != "before NotSelected" {
		t.Errorf("watch starts with %q", got)
	}

	if err := c.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	nextLine(t, follower, "the loss", lost)
	testenv.Eventually(t, "the reason", func(context.Context) error {
		return wantText(fleet.Snapshot().Connection.Problem, "connection refused")
	})
	if got := nextText(t, lines); !strings.HasPrefix(got, "not connected, changes are not shown: ") {
		t.Errorf("watch prints %q after the loss", got)
	}

	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Create(t, testenv.Node("meanwhile", nil))
	nextLine(t, follower, "the return", back)
	testenv.Eventually(t, "what happened meanwhile", func(context.Context) error {
		var names []string
		for _, node := range fleet.Snapshot().Nodes {
			names = append(names, node.Name)
		}
		return wantText(strings.Join(names, " "), "before meanwhile")
	})
	said := []string{nextText(t, lines), nextText(t, lines)}
	slices.Sort(said)
	if !strings.HasPrefix(said[0], "connected again after ") || said[1] != "meanwhile NotSelected" {
		t.Errorf("watch prints %q after the return", said)
	}
}

// lister may read nodes and rules, but watch only these resources.
func lister(t *testing.T, c *testenv.Cluster, user string, watch ...string) {
	t.Helper()
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"", "readiness.node.x-k8s.io"}, Resources: []string{"nodes", "nodereadinessrules", "pods"}, Verbs: []string{"get", "list"}}}
	if len(watch) > 0 {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{"", "readiness.node.x-k8s.io"}, Resources: watch, Verbs: []string{"watch"}})
	}
	c.Create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules})
	c.Create(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}})
}

func TestFollowingNeedsWatchPermission(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t)
	lister(t, c, "blind")
	lister(t, c, "half", "nodereadinessrules")
	lister(t, c, "nearly", "nodereadinessrules", "nodes")
	for user, want := range map[string]string{
		"blind": "permission to watch nodereadinessrules is missing: ask for a role",
		"half":  "permission to watch nodes is missing: ask for a role",
	} {
		testenv.Eventually(t, "the error of "+user, func(ctx context.Context) error {
			ctx, stop := context.WithTimeout(ctx, 10*time.Second) // Follow may retry
			defer stop()
			_, err := source(t, c, user).Follow(ctx, true)
			if err == nil {
				t.Fatalf("%s may follow", user)
			}
			return wantText(err.Error(), want)
		})
	}
	testenv.Eventually(t, "the error of nearly", func(ctx context.Context) error {
		fleet, err := source(t, c, "nearly").Follow(ctx, true)
		if err != nil {
			return err
		}
		return wantText(strings.Join(fleet.Snapshot().Unseen, " "), "permission to watch pods is missing")
	})
}

func wantText(got, want string) error {
	if !strings.Contains(got, want) {
		return fmt.Errorf("got %q, want %q in it", got, want)
	}
	return nil
}

package cli_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/readygate/readygate/internal/testenv"
)

// start starts the plugin, and returns a channel with the lines of its output.
func (u user) start(t *testing.T, args ...string) (lines <-chan string, interrupt func() error) {
	t.Helper()
	cmd := u.command(t, filepath.Join(plugin, "kubectl-readiness"), args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
	said := make(chan string, 1000)
	go func() {
		defer close(said)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			said <- scanner.Text()
		}
	}()
	return said, func() error {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return err
		}
		for range said { // until it closes its output
		}
		return cmd.Wait()
	}
}

// waitFor reads lines until one matches.
func waitFor(t *testing.T, lines <-chan string, pattern string) string {
	t.Helper()
	var found string
	testenv.Eventually(t, "a line that matches "+pattern, func(ctx context.Context) error {
		for {
			select {
			case line, open := <-lines:
				if !open {
					t.Fatalf("it ended before a line matched %s", pattern)
				}
				if found = regexp.MustCompile(pattern).FindString(line); found != "" {
					return nil
				}
			case <-ctx.Done():
				return ctx.Err()
			default:
				return errors.New("not yet")
			}
		}
	})
	return found
}

func TestWatchPrintsChanges(t *testing.T) {
	c := cluster(t)
	rule, held, released := scene(t, c)
	lines, interrupt := reader(t, c, "nodes", "nodereadinessrules").start(t, "watch")
	waitFor(t, lines, held+" Held by "+rule+": "+testenv.Condition+" is False$")
	c.SetCondition(t, held, testenv.Condition, corev1.ConditionTrue)
	waitFor(t, lines, held+" Released$")
	c.SetCondition(t, released, testenv.Condition, corev1.ConditionFalse)
	waitFor(t, lines, released+" Held by "+rule)
	if err := c.Client.Delete(t.Context(), testenv.Node(held, nil)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, lines, held+" is gone$")
	if err := interrupt(); err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
}

func TestUIServesTheDashboard(t *testing.T) {
	c := cluster(t)
	_, held, _ := scene(t, c)
	lines, interrupt := reader(t, c, "nodes", "nodereadinessrules").start(t, "ui", "--open=false")
	url := waitFor(t, lines, `http://127\.0\.0\.1:\d+/`)
	for path, want := range map[string]string{"": "<html", "api/nodes/" + held + "/explanation": held + " is held"} {
		if got := get(t, url+path); !strings.Contains(got, want) {
			t.Errorf("%s has no %q:\n%s", url+path, want, got)
		}
	}
	if err := interrupt(); err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	code, body, err := testenv.Get(t.Context(), url)
	if err != nil || code != http.StatusOK {
		t.Errorf("%s: %d, %v", url, code, err)
	}
	return body
}

package cli_test

import (
	"testing"

	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/testenv"
)

func TestErrorWithoutReadPermissionNamesTheNeededVerbs(t *testing.T) {
	c := cluster(t)
	for name, u := range map[string]user{"no rights": reader(t, c, "services"), "no nodes": reader(t, c, "nodereadinessrules")} {
		t.Run(name, func(t *testing.T) {
			for _, verb := range [][]string{{"status"}, {"nodes"}, {"watch"}, {"ui", "--open=false"}, {"why", "worker-1"}} {
				answer := u.readiness(t, verb...)
				answer.expect(t, 1, "error: cannot ", "permission denied: ask for a role that can get, list and watch")
				if answer.stdout != "" {
					t.Errorf("%v wrote %q", verb, answer.stdout)
				}
			}
		})
	}
}

func TestErrorsWithoutTheCRDAndWithoutAnAPIServer(t *testing.T) {
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Binaries: testenv.Binaries()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cp.Stop() })
	c, err := testenv.Connect(cp)
	if err != nil {
		t.Fatal(err)
	}
	u := admin(t, c)
	c.Create(t, testenv.Node("worker-1", nil))
	for _, verb := range [][]string{{"status"}, {"nodes"}, {"watch"}, {"ui", "--open=false"}, {"why", "worker-1"}} {
		u.readiness(t, verb...).expect(t, 1, "error: ", "this cluster does not serve NodeReadinessRules: install Readygate, or select another cluster with --context")
	}
	if err := cp.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	u.readiness(t, "status", "--request-timeout", "5s").expect(t, 1, "error: ", "kubectl cluster-info")
}

func TestEmptyClusterShowsTheNextStep(t *testing.T) {
	c := testenv.StartCluster(t)
	u := admin(t, c)
	u.readiness(t, "status").expect(t, 0, "No rules. Apply one, e.g. kubectl apply -f")
	u.readiness(t, "nodes").expect(t, 0, "This cluster has no nodes.")
	u.readiness(t, "nodes", "-o", "json").expect(t, 0, `"nodes": []`)
}

func TestKubectlFindsThePlugin(t *testing.T) {
	c := cluster(t)
	u := admin(t, c)
	u.run(t, "kubectl", "plugin", "list").expect(t, 0, "kubectl-readiness")
	u.run(t, "kubectl", "readiness", "--help").expect(t, 0, "kubectl readiness [command]")
	u.run(t, "kubectl", "readiness", "nodes", "--context", "default").expect(t, 0)
	u.run(t, "kubectl", "readiness", "nodes", "--context", "other").expect(t, 1, `"other" does not exist`)
	u.run(t, "kubectl", "readiness", "lint").expect(t, 2, "See 'kubectl readiness lint --help'.")
}

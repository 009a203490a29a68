package chart_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/readygate/readygate/internal/manager/leadership"
	"github.com/readygate/readygate/internal/manager/uninstall"
)

func jobs(all objects) []*batchv1.Job { return each[*batchv1.Job](all) }

// cleanupOptions parses the arguments of the cleanup Job as the cleanup does.
func cleanupOptions(t *testing.T, job *batchv1.Job) *uninstall.Options {
	t.Helper()
	args := job.Spec.Template.Spec.Containers[0].Args
	if args[0] != "cleanup" {
		t.Fatalf("the command is %v", args)
	}
	options := uninstall.NewOptions()
	flags := pflag.NewFlagSet("cleanup", pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse(args[1:]); err != nil {
		t.Fatalf("the cleanup rejects the arguments %v: %v", args, err)
	}
	return options
}

// TestCleanupHasTheOptionsOfTheInstallation: the cleanup ends before the default timeout of Helm.
func TestCleanupHasTheOptionsOfTheInstallation(t *testing.T) {
	all := render(t, ci(t, "reporters")+withPodgate)
	job := get[*batchv1.Job](t, all, "readygate-cleanup")
	options := cleanupOptions(t, job)
	if options.Namespace != namespace || options.Deployment != get[*appsv1.Deployment](t, all, "readygate-manager").Name || options.Rules != "keep" {
		t.Errorf("the cleanup is started with %+v", options)
	}
	want := []string{"cilium.io/AgentReady", "example.com/PodNetworkReady", "flannel.example.com/NetworkReady", "nvidia.com/DriverReady", "nvidia.com/ToolkitReady"}
	if !slices.Equal(options.Conditions, want) {
		t.Errorf("the cleanup removes the conditions %v, want %v", options.Conditions, want)
	}
	wantFound(t, all, options.Reporters, func(name string) bool { return strings.HasPrefix(name, "readygate-reporter-") })
	wantFound(t, all, options.Agents, func(name string) bool { return name == "readygate-podgate" })
	deadline := time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second
	if options.Timeout >= deadline || deadline >= 5*time.Minute {
		t.Errorf("timeouts: cleanup %v, its Job %v, Helm 5m; want each shorter than the next", options.Timeout, deadline)
	}
}

// The manager and the cleanup wait for controllers in the same namespaces. The default is that of the flag.
func TestManagerAndCleanupHaveTheSamePeers(t *testing.T) {
	for values, want := range map[string][]string{
		"":                                  leadership.DefaultPeerNamespaces(),
		"manager: {peerNamespaces: [a, b]}": {"a", "b"},
		"manager: {peerNamespaces: []}":     {},
	} {
		all := render(t, values)
		options := cleanupOptions(t, get[*batchv1.Job](t, all, "readygate-cleanup"))
		if !slices.Equal(options.Peers, want) {
			t.Errorf("%q: the cleanup has the peer namespaces %q, want %q", values, options.Peers, want)
		}
		arg := "--leader-election-peer-namespaces=" + strings.Join(want, ",")
		if args := get[*appsv1.Deployment](t, all, "readygate-manager").Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, arg) {
			t.Errorf("%q: the manager has the arguments %q, want %q", values, args, arg)
		}
	}
}

// wantFound checks that a label selector selects exactly the wanted DaemonSets and their pods.
func wantFound(t *testing.T, all objects, text string, want func(name string) bool) {
	t.Helper()
	selector, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range each[*appsv1.DaemonSet](all) {
		if selector.Matches(labels.Set(set.Labels)) != want(set.Name) || selector.Matches(labels.Set(set.Spec.Template.Labels)) != want(set.Name) {
			t.Errorf("the selector %s: selects the DaemonSet %s or its pods: %v, want %v", text, set.Name, !want(set.Name), want(set.Name))
		}
	}
	if selector.Matches(labels.Set(get[*appsv1.Deployment](t, all, "readygate-manager").Spec.Template.Labels)) {
		t.Errorf("the selector %s selects the manager", text)
	}
}

// TestCleanupRunsWhereTheManagerDoes: the cleanup also runs while all nodes are held and no pod network works.
func TestCleanupRunsWhereTheManagerDoes(t *testing.T) {
	all := pods(render(t, ci(t, "proxyless")))
	job, manager := all["readygate-cleanup"], all["readygate-manager"]
	if job.HostNetwork != manager.HostNetwork || job.DNSPolicy != manager.DNSPolicy || job.Containers[0].Image != manager.Containers[0].Image {
		t.Errorf("the pod of the cleanup is %v, want network, DNS policy and image of the manager", job)
	}
}

// TestCleanupIsAHook: Helm removes the cleanup and its rights after it has succeeded.
func TestCleanupIsAHook(t *testing.T) {
	seen := 0
	for _, obj := range render(t, "") {
		if strings.HasPrefix(kindOf(obj), "ValidatingAdmissionPolicy") {
			continue // limits the account before it exists, and no other account
		}
		hook := obj.GetAnnotations()["helm.sh/hook"]
		if strings.HasPrefix(obj.GetName(), "readygate-cleanup") != (hook == "pre-delete") {
			t.Errorf("%s %s has the hook annotation %q", kindOf(obj), obj.GetName(), hook)
		}
		if hook == "" {
			continue
		}
		seen++
		if obj.GetAnnotations()["helm.sh/hook-delete-policy"] != "before-hook-creation,hook-succeeded" {
			t.Errorf("%s is kept after the hook succeeded", kindOf(obj))
		}
		// Helm creates the rights before the Job.
		if want := map[bool]string{true: "0", false: "-1"}[kindOf(obj) == "Job"]; obj.GetAnnotations()["helm.sh/hook-weight"] != want {
			t.Errorf("the weight of %s is %s, want %s", kindOf(obj), obj.GetAnnotations()["helm.sh/hook-weight"], want)
		}
	}
	if seen != 6 {
		t.Errorf("the chart renders %d hooks, want 6", seen)
	}
}

// TestCleanupFollowsTheCRDs: the cleanup deletes the rules if the uninstallation deletes the CRDs.
func TestCleanupFollowsTheCRDs(t *testing.T) {
	for values, want := range map[string]string{"": "keep", "crds: {keep: false}": "delete", "crds: {keep: false, install: false}": "keep"} {
		if got := cleanupOptions(t, jobs(render(t, values))[0]).Rules; got != want {
			t.Errorf("with %q: --rules=%s, want %s", values, got, want)
		}
	}
	if len(jobs(render(t, "cleanup: {enabled: false}"))) > 0 {
		t.Error("the cleanup is rendered with cleanup.enabled false")
	}
}

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

// cleanupOptions are the arguments of the clean-up, as it reads them.
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
		t.Fatalf("the clean-up does not take %v: %v", args, err)
	}
	return options
}

// TestCleanupHasTheOptionsOfTheInstallation and ends before Helm loses its patience.
func TestCleanupHasTheOptionsOfTheInstallation(t *testing.T) {
	all := render(t, ci(t, "reporters")+withPodgate)
	job := get[*batchv1.Job](t, all, "readygate-cleanup")
	options := cleanupOptions(t, job)
	if options.Namespace != namespace || options.Deployment != get[*appsv1.Deployment](t, all, "readygate-manager").Name || options.Rules != "keep" {
		t.Errorf("the clean-up is started with %+v", options)
	}
	want := []string{"cilium.io/AgentReady", "example.com/PodNetworkReady", "flannel.example.com/NetworkReady", "nvidia.com/DriverReady", "nvidia.com/ToolkitReady"}
	if !slices.Equal(options.Conditions, want) {
		t.Errorf("it removes %v, want %v", options.Conditions, want)
	}
	wantFound(t, all, options.Reporters, func(name string) bool { return strings.HasPrefix(name, "readygate-reporter-") })
	wantFound(t, all, options.Agents, func(name string) bool { return name == "readygate-podgate" })
	deadline := time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second
	if options.Timeout >= deadline || deadline >= 5*time.Minute {
		t.Errorf("it has %v, its Job %v, Helm 5m", options.Timeout, deadline)
	}
}

// The manager and the clean-up wait for controllers in the same namespaces, and by default in the one that the flag has.
func TestManagerAndCleanupHaveTheSamePeers(t *testing.T) {
	for values, want := range map[string][]string{
		"":                                  leadership.DefaultPeerNamespaces(),
		"manager: {peerNamespaces: [a, b]}": {"a", "b"},
		"manager: {peerNamespaces: []}":     {},
	} {
		all := render(t, values)
		options := cleanupOptions(t, get[*batchv1.Job](t, all, "readygate-cleanup"))
		if !slices.Equal(options.Peers, want) {
			t.Errorf("%q: the clean-up has %q, want %q", values, options.Peers, want)
		}
		arg := "--leader-election-peer-namespaces=" + strings.Join(want, ",")
		if args := get[*appsv1.Deployment](t, all, "readygate-manager").Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, arg) {
			t.Errorf("%q: %q is not in %q", values, arg, args)
		}
	}
}

// wantFound checks that labels select the DaemonSets that are wanted, and their pods, and nothing else.
func wantFound(t *testing.T, all objects, text string, want func(name string) bool) {
	t.Helper()
	selector, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range each[*appsv1.DaemonSet](all) {
		if selector.Matches(labels.Set(set.Labels)) != want(set.Name) || selector.Matches(labels.Set(set.Spec.Template.Labels)) != want(set.Name) {
			t.Errorf("it finds %s with %s: %v", set.Name, text, !want(set.Name))
		}
	}
	if selector.Matches(labels.Set(get[*appsv1.Deployment](t, all, "readygate-manager").Spec.Template.Labels)) {
		t.Errorf("it finds the manager with %s", text)
	}
}

// TestCleanupRunsWhereTheManagerDoes: also where every node is held and no network works.
func TestCleanupRunsWhereTheManagerDoes(t *testing.T) {
	all := pods(render(t, ci(t, "proxyless")))
	job, manager := all["readygate-cleanup"], all["readygate-manager"]
	if job.HostNetwork != manager.HostNetwork || job.DNSPolicy != manager.DNSPolicy || job.Containers[0].Image != manager.Containers[0].Image {
		t.Errorf("the clean-up is %v", job)
	}
}

// TestCleanupIsAHook that leaves nothing behind if all went well.
func TestCleanupIsAHook(t *testing.T) {
	seen := 0
	for _, obj := range render(t, "") {
		if strings.HasPrefix(kindOf(obj), "ValidatingAdmissionPolicy") {
			continue // limits the account before it exists, and bothers nobody
		}
		hook := obj.GetAnnotations()["helm.sh/hook"]
		if strings.HasPrefix(obj.GetName(), "readygate-cleanup") != (hook == "pre-delete") {
			t.Errorf("%s %s is a hook: %q", kindOf(obj), obj.GetName(), hook)
		}
		if hook == "" {
			continue
		}
		seen++
		if obj.GetAnnotations()["helm.sh/hook-delete-policy"] != "before-hook-creation,hook-succeeded" {
			t.Errorf("%s stays", kindOf(obj))
		}
		// Its rights are there before it starts.
		if want := map[bool]string{true: "0", false: "-1"}[kindOf(obj) == "Job"]; obj.GetAnnotations()["helm.sh/hook-weight"] != want {
			t.Errorf("the weight of %s is %s, want %s", kindOf(obj), obj.GetAnnotations()["helm.sh/hook-weight"], want)
		}
	}
	if seen != 6 {
		t.Errorf("there are %d hooks", seen)
	}
}

// TestCleanupFollowsTheCRDs: where they go, so do the rules.
func TestCleanupFollowsTheCRDs(t *testing.T) {
	for values, want := range map[string]string{"": "keep", "crds: {keep: false}": "delete", "crds: {keep: false, install: false}": "keep"} {
		if got := cleanupOptions(t, jobs(render(t, values))[0]).Rules; got != want {
			t.Errorf("with %q: --rules=%s, want %s", values, got, want)
		}
	}
	if len(jobs(render(t, "cleanup: {enabled: false}"))) > 0 {
		t.Error("there is a clean-up though it is off")
	}
}

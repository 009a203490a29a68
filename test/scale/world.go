package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/readygate/readygate/api/node/v1alpha1"
	"github.com/readygate/readygate/internal/controlplane"
	"github.com/readygate/readygate/internal/testenv"
	"github.com/readygate/readygate/test/scale/report"
)

// pool is the value of the pool label of all nodes. All rules select it.
const pool = "scale"

// size is the size of a cluster.
type size struct{ Nodes, Rules int }

// world is a control plane with the nodes and the process of one subject.
type world struct {
	size
	subject    string
	manager    string // path of the manager
	cluster    *testenv.Cluster
	api        kubernetes.Interface
	metadata   metadata.Interface
	recorder   *recorder
	log        *requestLog
	dir        string // temporary files
	kubeconfig string // of the subject
	names      []string
	process    *controlplane.Process // nil: the load runs without a controller
}

// newWorld starts a control plane without nodes. The caller must call close.
func newWorld(ctx context.Context, subject, manager string, s size) (*world, error) {
	w := &world{size: s, subject: subject, manager: manager}
	for i := range s.Nodes {
		w.names = append(w.names, nodeName(i))
	}
	if err := w.open(ctx); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *world) open(ctx context.Context) (err error) {
	if w.dir, err = os.MkdirTemp("", "scale-"); err != nil {
		return err
	}
	if w.cluster, err = testenv.NewCluster(ctx); err != nil {
		return err
	}
	if w.metadata, err = metadata.NewForConfig(w.cluster.Config); err != nil {
		return err
	}
	protobuf := rest.CopyConfig(w.cluster.Config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	if w.api, err = kubernetes.NewForConfig(protobuf); err != nil {
		return err
	}
	own, err := kubernetes.NewForConfig(ownConnection(protobuf))
	if err != nil {
		return err
	}
	var taints []string
	for i := range w.Rules {
		taints = append(taints, testenv.TaintKey(ruleName(i)))
	}
	if w.recorder, err = startRecorder(ctx, own, taints); err != nil {
		return err
	}
	return w.authorize(ctx)
}

func ruleName(i int) string { return fmt.Sprintf("scale-%d", i) }

// prepare creates the nodes, unless they join later, starts the subject, and waits until it has tainted them.
func (w *world) prepare(ctx context.Context, join bool) error {
	var tainted []string
	if !join {
		logf("%s: creating %d nodes", w.subject, w.Nodes)
		if err := w.populate(ctx); err != nil || w.subject == report.LoadOnly {
			return err
		}
		tainted = w.names
	}
	if w.subject == report.Ours {
		for i := range w.Rules {
			rule := testenv.Rule(ruleName(i))
			rule.Spec.NodeSelector.MatchLabels["pool"] = pool
			if err := w.cluster.Client.Create(ctx, rule); err != nil {
				return err
			}
		}
	}
	if err := w.start(); err != nil {
		return err
	}
	if _, err := w.recorder.await(ctx, tainted, true); err != nil {
		return errors.Join(err, w.process.Alive())
	}
	return errors.Join(w.awaitCovered(ctx), w.quiet(ctx))
}

// awaitCovered waits until the API server adds the taints of Readygate's rules to new nodes.
func (w *world) awaitCovered(ctx context.Context) error {
	if w.subject != report.Ours {
		return nil
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, changeTimeout, true, func(ctx context.Context) (bool, error) {
		var list v1alpha1.NodeReadinessRuleList
		if err := w.cluster.Client.List(ctx, &list); err != nil {
			return false, err
		}
		return !slices.ContainsFunc(list.Items, func(r v1alpha1.NodeReadinessRule) bool {
			return !meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionTaintedAtCreation)
		}), w.process.Alive()
	})
	if err != nil {
		return fmt.Errorf("waiting for TaintedAtCreation: %w", err)
	}
	return nil
}

// ownConnection returns a configuration whose clients share no connection with other clients. client-go shares
// connections between equal configurations, and a configuration with a dialer equals no other.
func ownConnection(config *rest.Config) *rest.Config {
	own := rest.CopyConfig(config)
	own.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	return own
}

// authorize writes the kubeconfig of the subject, which runs as a service account. Readygate's manager has its own
// role, the floor is cluster-admin.
func (w *world) authorize(ctx context.Context) error {
	user := "system:serviceaccount:" + testenv.ManagerNamespace + ":" + w.subject
	if w.subject == report.Ours {
		user = testenv.ManagerUser
	}
	w.log = &requestLog{path: w.cluster.AuditLog(), user: user, requests: map[string]int{}}
	config, err := w.cluster.ControlPlane.Config(user, "system:serviceaccounts", "system:serviceaccounts:"+testenv.ManagerNamespace)
	if err != nil {
		return err
	}
	w.kubeconfig = filepath.Join(w.dir, "kubeconfig")
	if err := controlplane.WriteKubeconfig(w.kubeconfig, config); err != nil {
		return err
	}
	if w.subject == report.Ours {
		return w.cluster.InstallPolicies(ctx)
	}
	return w.cluster.Client.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scale-subject"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}

func (w *world) close() error {
	if w.process != nil {
		w.stop()
	}
	if w.recorder != nil {
		w.recorder.stop()
	}
	var err error
	if w.cluster != nil {
		err = w.cluster.Stop()
	}
	return errors.Join(err, os.RemoveAll(w.dir))
}

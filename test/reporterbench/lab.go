package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/readygate/readygate/internal/controlplane"
)

const (
	namespace = "reporterbench"
	// guideRole is what the guide grants to the account of a sidecar.
	guideRole = "node-status-patch-role"
	// readRole is what the account of a CNI agent has anyway, and some reporters need.
	readRole = "read-nodes"
)

// lab is where reporters are measured: an API server, endpoints for their checks, and a
// witness of what they write.
type lab struct {
	plane     *controlplane.ControlPlane
	api       kubernetes.Interface
	ca        []byte
	endpoints *endpoints
	witness   *witness
	dir       string // of files that are gone in the end
}

// newLab starts a lab; close ends it.
func newLab(ctx context.Context, kube string) (*lab, error) {
	say("starting etcd and kube-apiserver")
	l := &lab{}
	if err := l.start(ctx, kube); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (l *lab) start(ctx context.Context, kube string) (err error) {
	if l.dir, err = os.MkdirTemp("", "reporterbench-"); err != nil {
		return err
	}
	if l.plane, err = controlplane.Start(ctx, controlplane.Options{Binaries: kube}); err != nil {
		return err
	}
	admin, err := l.plane.Admin()
	if err != nil {
		return err
	}
	l.ca = admin.CAData
	admin.ContentType = "application/vnd.kubernetes.protobuf" // a large node is read at each write
	if l.api, err = kubernetes.NewForConfig(admin); err != nil {
		return err
	}
	if err := l.grant(ctx); err != nil {
		return err
	}
	if l.endpoints, err = serveEndpoints(); err != nil {
		return err
	}
	l.witness, err = startWitness(ctx, l.api)
	return err
}

func (l *lab) close() error {
	if l.endpoints != nil {
		l.endpoints.close()
	}
	if l.witness != nil {
		l.witness.stop()
	}
	var errs []error
	if l.plane != nil {
		errs = append(errs, l.plane.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(l.dir))...)
}

// grant makes the namespace of the accounts, and their roles.
func (l *lab) grant(ctx context.Context) error {
	if _, err := l.api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the namespace: %w", err)
	}
	for name, rule := range map[string]rbacv1.PolicyRule{
		guideRole: {APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch", "update"}},
		readRole:  {APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}},
	} {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}}
		if _, err := l.api.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a role: %w", err)
		}
	}
	return nil
}

package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/api/crds"
	"github.com/readygate/readygate/api/node/v1alpha1"
	podv1alpha1 "github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/admission"
)

const crdTimeout = time.Minute

// installCRDs makes the API known.
func (s *cluster) installCRDs(ctx context.Context) error {
	definitions, err := crds.Definitions()
	if err != nil {
		return err
	}
	for _, crd := range definitions {
		if err := s.create(ctx, crd); err != nil {
			return err
		}
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, crdTimeout, true, func(ctx context.Context) (bool, error) {
		return s.client.List(ctx, &v1alpha1.NodeReadinessRuleList{}) == nil && s.client.List(ctx, &podv1alpha1.PodReadinessRuleList{}) == nil, nil
	})
}

// installManager makes what a manager needs: its account and role, and the policies.
func (s *cluster) installManager(ctx context.Context, root string) error {
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: admission.ManagerNamespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: admission.ManagerNamespace, Name: admission.ManagerAccount}},
	}
	roles, err := readRoles(filepath.Join(root, "charts", "readygate", "files", "role.yaml"))
	if err != nil {
		return err
	}
	for _, role := range roles {
		objects = append(objects, role, bindingOf(role, admission.ManagerNamespace, admission.ManagerAccount))
	}
	for _, obj := range admission.Installed() {
		objects = append(objects, obj.(client.Object))
	}
	return s.create(ctx, objects...)
}

// readRoles reads generated roles.
func readRoles(path string) ([]*unstructured.Unstructured, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading roles (the demo runs in the root of the repository): %w", err)
	}
	var roles []*unstructured.Unstructured
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		role := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &role.Object); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		roles = append(roles, role)
	}
	return roles, nil
}

// bindingOf gives a role to an account.
func bindingOf(role client.Object, namespace, account string) client.Object {
	kind := role.GetObjectKind().GroupVersionKind().Kind
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role.GetName()}
	meta := metav1.ObjectMeta{Name: role.GetName(), Namespace: role.GetNamespace(), Labels: role.GetLabels()}
	if kind == "Role" {
		return &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}
	}
	return &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}
}

const reporterAccount = "reporter"

// installReporter makes the namespace of the scenario, and the account of its reporters, which
// may do what the guides' may.
func (s *cluster) installReporter(ctx context.Context) error {
	role := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: Namespace + "-" + reporterAccount},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}}},
	}
	return s.create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: reporterAccount}},
		role, bindingOf(role, Namespace, reporterAccount))
}

package demo

import (
	"bytes"
	"context"
	"errors"
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

const (
	crdTimeout      = time.Minute
	reporterAccount = "reporter"
)

// install installs the API, the policies, and the accounts of the manager, the agents and the reporters. Each account has
// the permissions that it has on a user's cluster.
func (c *cluster) install(ctx context.Context, root string) error {
	definitions, err := crds.Definitions()
	if err != nil {
		return err
	}
	for _, crd := range definitions {
		if err := c.create(ctx, crd); err != nil {
			return err
		}
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, crdTimeout, true, func(ctx context.Context) (bool, error) {
		return c.client.List(ctx, &v1alpha1.NodeReadinessRuleList{}) == nil && c.client.List(ctx, &podv1alpha1.PodReadinessRuleList{}) == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the API: %w", err)
	}
	managerRoles, managerErr := readRoles(filepath.Join(root, "charts", "readygate", "files", "role.yaml"))
	agentRoles, agentErr := readRoles(filepath.Join(root, "charts", "readygate", "files", "podgate-role.yaml"))
	if err := errors.Join(managerErr, agentErr); err != nil {
		return err
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: admission.ManagerNamespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}},
	}
	objects = append(objects, account(admission.ManagerNamespace, admission.ManagerAccount, managerRoles...)...)
	objects = append(objects, account(admission.ManagerNamespace, admission.PodgateAccount, agentRoles...)...)
	objects = append(objects, account(Namespace, reporterAccount, &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: Namespace + "-" + reporterAccount},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}}},
	})...)
	for _, obj := range admission.Installed() {
		objects = append(objects, obj.(client.Object))
	}
	return c.create(ctx, objects...)
}

// readRoles reads generated roles.
func readRoles(path string) ([]client.Object, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading roles (run the demo in the root of the repository): %w", err)
	}
	var roles []client.Object
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		role := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &role.Object); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		roles = append(roles, role)
	}
	return roles, nil
}

// account returns a service account with its roles and their bindings.
func account(namespace, name string, roles ...client.Object) []client.Object {
	objects := []client.Object{&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
	for _, role := range roles {
		kind := role.GetObjectKind().GroupVersionKind().Kind
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role.GetName()}
		meta := metav1.ObjectMeta{Name: role.GetName(), Namespace: role.GetNamespace(), Labels: role.GetLabels()}
		if kind == "Role" {
			objects = append(objects, role, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref})
		} else {
			objects = append(objects, role, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref})
		}
	}
	return objects
}

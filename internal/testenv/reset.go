package testenv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// object is the identity of one object.
type object struct {
	schema.GroupVersionResource
	types.NamespacedName
}

// managed are resources whose objects the API server creates and deletes itself.
var managed = sets.New(
	schema.GroupResource{Resource: "endpoints"},
	schema.GroupResource{Resource: "componentstatuses"},
	schema.GroupResource{Resource: "events"}, // the same as those of events.k8s.io
	schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"},
	schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"},
	schema.GroupResource{Group: "networking.k8s.io", Resource: "ipaddresses"},
	schema.GroupResource{Group: "networking.k8s.io", Resource: "servicecidrs"},
)

// inventory is the metadata of all objects.
type inventory map[object]metav1.ObjectMeta

func (c *Cluster) inventory(ctx context.Context) (inventory, error) {
	resources, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	lists, err := resources.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	found := inventory{}
	// Not "patch": discovery does not name it for objects of a CRD that is being deleted.
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			kind := group.WithResource(resource.Name)
			if managed.Has(kind.GroupResource()) {
				continue
			}
			items, err := objects.Resource(kind).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // its CRD has just been deleted
			}
			if err != nil {
				return nil, fmt.Errorf("listing %s: %w", kind.GroupResource(), err)
			}
			for i := range items.Items {
				meta := items.Items[i].ObjectMeta
				if resource.Name == "leases" && meta.Namespace == metav1.NamespaceSystem {
					continue // of API servers
				}
				found[object{kind, types.NamespacedName{Namespace: meta.Namespace, Name: meta.Name}}] = meta
			}
		}
	}
	return found, nil
}

// errChanged means that an object is not as it was.
var errChanged = errors.New("changed or deleted")

// without returns the objects that another inventory does not have. It fails if an object of the other one has
// changed.
func (i inventory) without(other inventory) ([]object, error) {
	rest := maps.Clone(i)
	for key, was := range other {
		if is, ok := i[key]; !ok || changed(was, is) {
			return nil, fmt.Errorf("%s %s: %w", key.Resource, key.NamespacedName, errChanged)
		}
		delete(rest, key)
	}
	return slices.SortedFunc(maps.Keys(rest), func(a, b object) int { return rank(a) - rank(b) }), nil
}

// reset deletes everything that was not installed, and returns when the API server no longer applies policies of
// the test. If a test has changed what was installed, reset deletes that also, and installs it again.
func (c *Cluster) reset(ctx context.Context) error {
	err := c.deleteAllBut(ctx, c.installed)
	if errors.Is(err, errChanged) {
		err = c.reinstall(ctx)
	}
	if err != nil {
		return err
	}
	return c.awaitAdmission(ctx)
}

func (c *Cluster) reinstall(ctx context.Context) error {
	if err := c.deleteAllBut(ctx, c.bare); err != nil {
		return err
	}
	before := c.installed
	if err := c.installAndList(ctx); err != nil {
		return err
	}
	if !maps.EqualFunc(before, c.installed, func(_, _ metav1.ObjectMeta) bool { return true }) {
		return fmt.Errorf("other objects after the installation than before: %d, want %d", len(c.installed), len(before))
	}
	return nil
}

// installAndList installs the CRDs and the manager's role, and records all objects that exist then.
func (c *Cluster) installAndList(ctx context.Context) (err error) {
	if err := c.install(ctx); err != nil {
		return err
	}
	c.installed, err = c.inventory(ctx)
	return err
}

func (c *Cluster) deleteAllBut(ctx context.Context, keep inventory) error {
	objects, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	var failed error // a policy that was deleted a moment ago may still reject a deletion: try again
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		present, err := c.inventory(ctx)
		if err != nil {
			return false, err
		}
		rest, err := present.without(keep)
		failed = nil
		if len(rest) > 0 {
			failed = fmt.Errorf("%d objects are left, the first is %s %s", len(rest), rest[0].Resource, rest[0].NamespacedName)
		}
		for _, key := range rest {
			failed = errors.Join(failed, c.remove(ctx, objects.Resource(key.GroupVersionResource).Namespace(key.Namespace), key, len(present[key].Finalizers) > 0))
		}
		return len(rest) == 0, err
	})
	return errors.Join(err, failed)
}

// rank is the order of deletions: policies first, as they can reject the others, and last what contains others.
func rank(key object) int {
	switch {
	case key.Group == admissionv1.GroupName:
		return 0
	case key.Resource == "namespaces" || key.Resource == "customresourcedefinitions":
		return 2
	}
	return 1
}

// changed reports whether a test has changed or replaced an object. The API server itself writes the status of
// objects with a generation, and the finalizers of CRDs.
func changed(was, is metav1.ObjectMeta) bool {
	if was.UID != is.UID || is.DeletionTimestamp != nil {
		return true
	}
	if was.Generation > 0 {
		return was.Generation != is.Generation || !maps.Equal(was.Labels, is.Labels) || !maps.Equal(was.Annotations, is.Annotations)
	}
	return was.ResourceVersion != is.ResourceVersion
}

// remove deletes an object, whatever its finalizers are.
func (c *Cluster) remove(ctx context.Context, objects metadata.ResourceInterface, key object, finalizers bool) error {
	if finalizers && key.Resource != "customresourcedefinitions" { // the API server deletes its objects first
		_, err := objects.Patch(ctx, key.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	err := objects.Delete(ctx, key.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64), PropagationPolicy: new(metav1.DeletePropagationBackground)})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	if key.Resource != "namespaces" {
		return nil
	}
	all, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	_, err = all.CoreV1().Namespaces().Finalize(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Name}}, metav1.UpdateOptions{})
	return client.IgnoreNotFound(err)
}

// awaitAdmission returns when the API server no longer applies policies that were deleted before. It reads
// policies about once a second, all of one kind together: so it has noticed the deletions when it applies a
// policy that was created after them.
func (c *Cluster) awaitAdmission(ctx context.Context) error {
	const name, message = "admission-of-deleted-policies", "policies that were created now are applied"
	probe := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}}
	}
	match := &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
		ResourceNames: []string{name},
		RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		},
	}}}
	meta := metav1.ObjectMeta{Name: name}
	policies := []client.Object{
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: match, Validations: []admissionv1.Validation{{Expression: "!has(object.data) || !('rejected' in object.data)", Message: message}},
		}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}},
		&admissionv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: match, ReinvocationPolicy: admissionv1.NeverReinvocationPolicy, Mutations: []admissionv1.Mutation{{
				PatchType:          admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: `Object{data: {"mutated": "true"}}`},
			}},
		}},
		&admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name}},
	}
	for _, policy := range policies {
		if err := c.Client.Create(ctx, policy); err != nil {
			return err
		}
	}
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		mutated, rejected := probe(), probe()
		rejected.Data = map[string]string{"rejected": "true"}
		if err := c.Client.Create(ctx, mutated, client.DryRunAll); err != nil || mutated.Data["mutated"] != "true" {
			return false, nil //nolint:nilerr // a policy that was deleted may still reject it
		}
		err := c.Client.Create(ctx, rejected, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), message), nil
	})
	for _, policy := range policies {
		err = errors.Join(err, c.Client.Delete(ctx, policy))
	}
	return err
}

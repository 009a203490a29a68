package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownKeys are prefixes of keys that API servers write and delete at any time for themselves.
var ownKeys = []string{
	"/registry/apiregistration.k8s.io/", "/registry/endpointslices/", "/registry/ipaddresses/", "/registry/leases/kube-system/",
	"/registry/masterleases/", "/registry/peerserverleases/", "/registry/ranges/", "/registry/servicecidrs/", "/registry/services/endpoints/",
}

// reset restores in etcd what was stored when the control plane was new, and returns when the API server serves the
// CRDs and no longer applies policies of the test. It does not use the API: finalizers, policies that reject a deletion
// and resources of deleted CRDs cannot stop it. It fails if a client still writes objects, so that the next test does not
// find them.
func (c *Cluster) reset(ctx context.Context) error {
	if _, err := c.restore(ctx); err != nil {
		return err
	}
	if err := c.awaitCRDs(ctx); err != nil {
		return err
	}
	if err := c.awaitAdmission(ctx); err != nil {
		return err
	}
	changed, err := c.restore(ctx)
	if len(changed) > 0 {
		err = errors.Join(err, fmt.Errorf("written after the test: %s", strings.Join(changed, ", ")))
	}
	return err
}

// restore writes and deletes keys of etcd until it has those of the new control plane, and returns these keys.
func (c *Cluster) restore(ctx context.Context) (changed []string, err error) {
	present, err := c.stored(ctx)
	if err != nil {
		return nil, err
	}
	for key := range present {
		if _, keep := c.installed[key]; !keep {
			changed = append(changed, key)
			err = errors.Join(err, c.etcd(ctx, "deleterange", keyValue{Key: []byte(key)}, nil))
		}
	}
	for key, value := range c.installed {
		if !bytes.Equal(present[key], value) {
			changed = append(changed, key)
			err = errors.Join(err, c.etcd(ctx, "put", keyValue{[]byte(key), value}, nil))
		}
	}
	return changed, err
}

// keyValue is a key of etcd, with a value in answers and in put.
type keyValue struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value,omitempty"`
}

// stored are all objects in etcd, encoded, by key.
func (c *Cluster) stored(ctx context.Context) (map[string][]byte, error) {
	var answer struct {
		KVs []keyValue `json:"kvs"`
	}
	all := map[string][]byte{"key": []byte("/registry/"), "range_end": []byte("/registry0")}
	if err := c.etcd(ctx, "range", all, &answer); err != nil {
		return nil, err
	}
	found := map[string][]byte{}
	for _, kv := range answer.KVs {
		if key := string(kv.Key); !slices.ContainsFunc(ownKeys, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			found[key] = kv.Value
		}
	}
	return found, nil
}

// etcd calls a method of etcd's key-value store. The answer may be nil.
func (c *Cluster) etcd(ctx context.Context, method string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, c.EtcdURL()+"/v3/kv/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(post)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	body, err = io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	if err != nil {
		return fmt.Errorf("etcd: %s: %w", method, err)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(body, answer)
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
	named := metav1.ObjectMeta{Name: name}
	policies := []client.Object{
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: named, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: match, Validations: []admissionv1.Validation{{Expression: "!has(object.data) || !('rejected' in object.data)", Message: message}},
		}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: named, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}},
		&admissionv1.MutatingAdmissionPolicy{ObjectMeta: named, Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: match, ReinvocationPolicy: admissionv1.NeverReinvocationPolicy, Mutations: []admissionv1.Mutation{{
				PatchType:          admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: `Object{data: {"mutated": "true"}}`},
			}},
		}},
		&admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: named, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name}},
	}
	for _, policy := range policies {
		if err := c.Client.Create(ctx, policy); err != nil && !meta.IsNoMatchError(err) {
			return err
		}
	}
	_, missing := c.MutatingVersion()
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		mutated, rejected := probe(), probe()
		rejected.Data = map[string]string{"rejected": "true"}
		if err := c.Client.Create(ctx, mutated, client.DryRunAll); err != nil || missing == nil && mutated.Data["mutated"] != "true" {
			return false, nil //nolint:nilerr // a policy that was deleted may still reject it
		}
		err := c.Client.Create(ctx, rejected, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), message), nil
	})
	for _, policy := range policies {
		if deleted := c.Client.Delete(ctx, policy); !meta.IsNoMatchError(deleted) {
			err = errors.Join(err, deleted)
		}
	}
	return err
}

// Package ruletaints owns the list of rule taints: the taint of each rule, by the UID of the rule. It is one
// ConfigMap in the namespace of the manager. The leader adds a rule before a node or a policy names the rule, and
// removes it when no trace of the rule is left. Ownership records on nodes can be forged; the manager acts only on
// those whose rule and taint are in the list.
//
// The package writes that ConfigMap only, and never writes nodes.
package ruletaints

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/core/admission"
	"github.com/readygate/readygate/internal/core/noderule"
)

// ConfigMapName is the name of the ConfigMap. Each key is the UID of a rule, each value its taint as
// key:effect.
const ConfigMapName = "readygate-rule-taints"

func configMap(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ConfigMapName, Labels: map[string]string{admission.PartOfLabel: admission.PartOf}},
	}
}

// Read returns the entries of the list, and the keys of malformed entries. A ConfigMap that does not exist has none.
func Read(ctx context.Context, from client.Reader, namespace string) (taints noderule.RuleTaints, malformed []string, err error) {
	obj := configMap(namespace)
	if err := from.Get(ctx, client.ObjectKeyFromObject(obj), obj); client.IgnoreNotFound(err) != nil {
		return nil, nil, fmt.Errorf("reading the list of rule taints, ConfigMap %s/%s: %w", namespace, ConfigMapName, err)
	}
	taints, malformed = entriesOf(obj)
	return taints, malformed, nil
}

// Delete deletes the list. It reports whether the list existed.
func Delete(ctx context.Context, c client.Client, namespace string) (bool, error) {
	obj := configMap(namespace)
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if err == nil {
		err = c.Delete(ctx, obj)
	}
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("deleting the list of rule taints, ConfigMap %s/%s: %w", namespace, ConfigMapName, err)
	}
	return err == nil, nil
}

func entriesOf(obj *corev1.ConfigMap) (taints noderule.RuleTaints, malformed []string) {
	taints = noderule.RuleTaints{}
	for uid, text := range obj.Data {
		if taint, ok := noderule.ParseTaint(text); ok {
			taints[types.UID(uid)] = taint
		} else {
			malformed = append(malformed, uid)
		}
	}
	slices.Sort(malformed)
	return taints, malformed
}

// write adds and removes entries, and returns the stored ConfigMap. It changes no other entries, malformed ones
// included. If the ConfigMap does not exist, write creates it with all entries.
func write(ctx context.Context, c client.Client, namespace string, known, add noderule.RuleTaints, remove []types.UID) (*corev1.ConfigMap, error) {
	data := map[types.UID]any{}
	for uid, taint := range add {
		data[uid] = taint.String()
	}
	for _, uid := range remove {
		data[uid] = nil
	}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return nil, err
	}
	obj := configMap(namespace)
	err = c.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), client.DisableReadYourWritesConsistency)
	if apierrors.IsNotFound(err) {
		obj = configMap(namespace)
		obj.Data = map[string]string{}
		for _, taints := range []noderule.RuleTaints{known, add} {
			for uid, taint := range taints {
				obj.Data[string(uid)] = taint.String()
			}
		}
		for _, uid := range remove {
			delete(obj.Data, string(uid))
		}
		err = c.Create(ctx, obj, client.DisableReadYourWritesConsistency)
	}
	if err != nil {
		return nil, fmt.Errorf("writing the list of rule taints, ConfigMap %s/%s: %w", namespace, ConfigMapName, err)
	}
	return obj, nil
}

package view

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writersOf are the writers of a node's conditions, by type, as the API server keeps them in
// managed fields.
func writersOf(fields []metav1.ManagedFieldsEntry) map[string]string {
	writers := map[string]string{}
	latest := map[string]metav1.Time{}
	for _, entry := range fields {
		if entry.FieldsV1 == nil {
			continue
		}
		var owned struct {
			Status struct {
				Conditions map[string]json.RawMessage `json:"f:conditions"`
			} `json:"f:status"`
		}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		for key := range owned.Status.Conditions {
			var of struct{ Type string }
			text, keyed := strings.CutPrefix(key, "k:")
			if !keyed || json.Unmarshal([]byte(text), &of) != nil {
				continue
			}
			at := metav1.Time{}
			if entry.Time != nil {
				at = *entry.Time
			}
			if before, known := latest[of.Type]; !known || before.Before(&at) {
				writers[of.Type], latest[of.Type] = entry.Manager, at
			}
		}
	}
	return writers
}

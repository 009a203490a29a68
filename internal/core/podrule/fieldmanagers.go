package podrule

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Writers are the field managers that last set the status of conditions, by type, as the API server keeps
// them in managed fields. The client chooses that name: it is a hint, not an identity.
func Writers(fields []metav1.ManagedFieldsEntry) map[string]string {
	writers := map[string]string{}
	latest := map[string]metav1.Time{}
	for _, entry := range fields {
		if entry.FieldsV1 == nil {
			continue
		}
		var owned struct {
			Status struct {
				Conditions map[string]struct {
					Status *struct{} `json:"f:status"`
				} `json:"f:conditions"`
			} `json:"f:status"`
		}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		for key, condition := range owned.Status.Conditions {
			var of struct{ Type string }
			text, keyed := strings.CutPrefix(key, "k:")
			if !keyed || condition.Status == nil || json.Unmarshal([]byte(text), &of) != nil {
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

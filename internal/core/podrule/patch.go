package podrule

import (
	"encoding/json"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/readygate/readygate/api/pod/v1alpha1"
)

// Patch is one write of a pod's status.
type Patch struct {
	Conditions []corev1.PodCondition
	// Key is the new value of the latch annotation; empty: no change.
	Key string
	// Touch means that the pod has this key already, and that it is written again.
	Touch bool
}

// writes reports whether the patch writes the condition of a gate.
func (p *Patch) writes(gate string) bool {
	return p != nil && slices.ContainsFunc(p.Conditions, func(c corev1.PodCondition) bool { return string(c.Type) == gate })
}

// Strategic returns the patch as a strategic merge patch of the status, with these conditions and one annotation only. It
// contains the pod's UID, so that the API server rejects it for another pod of the same name.
func (p *Patch) Strategic(pod types.UID) ([]byte, error) {
	type metadata struct {
		UID         types.UID         `json:"uid"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	type status struct {
		Conditions []corev1.PodCondition `json:"conditions,omitempty"`
	}
	patch := struct {
		Metadata metadata `json:"metadata"`
		Status   status   `json:"status"`
	}{metadata{UID: pod}, status{p.Conditions}}
	if p.Key != "" {
		patch.Metadata.Annotations = map[string]string{v1alpha1.LatchAnnotation: p.Key}
	}
	return json.Marshal(patch)
}

// Send sends the patch. If the annotations of the pod are full, it sends the conditions without the key: an account that
// may write annotations must not be able to keep gates closed.
func (p *Patch) Send(pod types.UID, send func(patch []byte) error) error {
	data, err := p.Strategic(pod)
	if err != nil {
		return err
	}
	if err = send(data); len(p.Conditions) == 0 || !Full(err) {
		return err
	}
	if data, err = (&Patch{Conditions: p.Conditions}).Strategic(pod); err != nil {
		return err
	}
	return send(data)
}

// Missed reports whether the pod of a patch does not exist anymore, or another pod has its name. In the second case the
// API server rejects the UID as invalid.
func Missed(err error) bool {
	return apierrors.IsNotFound(err) || namesField(err, "metadata.uid")
}

// Full reports whether there was no room for the key among the annotations of a pod. Only the account that writes
// them can fix that.
func Full(err error) bool { return namesField(err, "metadata.annotations") }

// namesField reports whether an error of the API server names a field.
func namesField(err error, field string) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool { return cause.Field == field })
}

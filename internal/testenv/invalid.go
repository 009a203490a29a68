package testenv

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxError is the maximum length of an error in bytes: the API server must not repeat a huge value.
const maxError = 4096

// CheckInvalid returns an error unless the API server rejected the request as invalid, with this message for the field.
func CheckInvalid(answer error, field, message string) error {
	var status apierrors.APIStatus
	switch {
	case answer == nil:
		return errors.New("was accepted")
	case !errors.As(answer, &status) || !apierrors.IsInvalid(answer):
		return fmt.Errorf("was not rejected as invalid: %w", answer)
	case len(answer.Error()) > maxError:
		return fmt.Errorf("has %d bytes: %.200s", len(answer.Error()), answer.Error())
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == field && strings.Contains(cause.Message, message) {
			return nil
		}
	}
	return fmt.Errorf("has no message %q for field %s\ngot %w", message, field, answer)
}

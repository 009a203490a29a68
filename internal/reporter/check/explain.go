package check

import (
	"errors"
	"time"

	"github.com/readygate/readygate/internal/neterror"
)

// explain describes a network error in a few words.
func explain(err error, timeout time.Duration) string {
	if errors.Is(err, errOtherHost) || errors.Is(err, errManyRedirects) {
		return errors.Unwrap(err).Error()
	}
	return neterror.Explain(err, timeout)
}

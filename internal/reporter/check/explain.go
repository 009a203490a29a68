package check

import (
	"errors"
	"time"

	"github.com/readygate/readygate/internal/neterror"
)

// explain says in a few words why nobody answered.
func explain(err error, timeout time.Duration) string {
	if errors.Is(err, errElsewhere) || errors.Is(err, errManyRedirects) {
		return errors.Unwrap(err).Error()
	}
	return neterror.Explain(err, timeout)
}

package scenario

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a duration in Go's format, e.g. 500ms or 2m.
type Duration struct{ time.Duration }

// longest is the maximum duration.
const longest = 30 * time.Minute

// UnmarshalJSON reads the string.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("a duration is %s, must be a string, e.g. 500ms or 2s", data)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil || parsed < 0 || parsed > longest {
		return fmt.Errorf("a duration is %q, must be from 0s to %v, e.g. 500ms or 2s", text, longest)
	}
	d.Duration = parsed
	return nil
}

// or returns the duration, or the given one if it is absent.
func (d *Duration) or(otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.Duration
}

package check

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a time.Duration that is written as in 1m30s.
type Duration time.Duration

// String is as in 1m30s.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes the duration as a text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads the duration from a text with a unit.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("%s is not a duration, must be a text with a unit, e.g. 30s", data)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration, must have a unit, e.g. 30s", text)
	}
	*d = Duration(parsed)
	return nil
}

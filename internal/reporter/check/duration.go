package check

import (
	"encoding/json"
	"strconv"
	"time"
)

// Duration is a time.Duration in the format 1m30s. Decoding never fails: AtLeast returns the error for
// an invalid value, because it has the name of the field.
type Duration struct {
	time.Duration
	unread string
}

// MaxDuration is one year. A longer value is treated as a mistake.
const MaxDuration = 365 * 24 * time.Hour

// For returns a Duration.
func For(d time.Duration) *Duration { return &Duration{Duration: d} }

// MarshalJSON writes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// ParseDuration reads a duration from a string with a unit.
func ParseDuration(text string) *Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		return &Duration{unread: strconv.Quote(text)}
	}
	return For(d)
}

// UnmarshalJSON reads the duration from a string with a unit.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		d.unread = string(data)
		return nil
	}
	*d = *ParseDuration(text)
	return nil
}

// AtLeast returns an error if the duration of a field is set and invalid. The example is a valid value.
func (d *Duration) AtLeast(least time.Duration, field, example string) error {
	switch {
	case d == nil:
		return nil
	case d.unread != "":
		return wrong(field, "is %.40s, must be a duration in h, m, s or ms, e.g. %s", d.unread, example)
	case d.Duration < least:
		return wrong(field, "is %v, must be at least %v, e.g. %s", d, least, example)
	case d.Duration > MaxDuration:
		return wrong(field, "is %v, must be at most %v, e.g. %s", d, MaxDuration, example)
	}
	return nil
}

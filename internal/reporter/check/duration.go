package check

import (
	"encoding/json"
	"strconv"
	"time"
)

// Duration is a time.Duration that is written as in 1m30s. What cannot be read as one is kept
// until AtLeast is requested: only there is it known which field it is in.
type Duration struct {
	time.Duration
	unread string
}

// MaxDuration is a year: what is longer is a mistake.
const MaxDuration = 365 * 24 * time.Hour

// For is the duration.
func For(d time.Duration) *Duration { return &Duration{Duration: d} }

// MarshalJSON writes the duration as a text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// ParseDuration reads a duration from a text with a unit.
func ParseDuration(text string) *Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		return &Duration{unread: strconv.Quote(text)}
	}
	return For(d)
}

// UnmarshalJSON reads the duration from a text with a unit.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		d.unread = string(data)
		return nil
	}
	*d = *ParseDuration(text)
	return nil
}

// AtLeast returns what is wrong with the duration of a field, if it is given. The example is one
// that would do.
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

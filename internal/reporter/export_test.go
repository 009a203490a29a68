package reporter

import (
	"time"

	"github.com/readygate/readygate/internal/reporter/check"
)

// Tasks compiles a configuration, as a reporter on the node n does.
func Tasks(config *Config) error {
	_, err := config.tasks(check.Env{Node: "n", Variable: func(string) string { return "" }})
	return err
}

// What metrics are made of.
var (
	Observed = (*Metrics).observed
	Wrote    = (*Metrics).wrote
	Write    = (*Metrics).write
)

// Waiting is how long a writer waits that last wrote so long ago and has messageWrites so often.
func Waiting(urgency urgency, ago time.Duration, messageWrites, conditions int) time.Duration {
	w := &writer{heartbeat: func() time.Duration { return time.Hour }, wrote: time.Now().Add(-ago), spread: 1, messageWrites: messageWrites}
	return w.waiting(urgency, conditions)
}

// BackOff is how long it waits after an error.
func BackOff(err error) time.Duration { return (&writer{}).backOff(err) }

// Urgencies.
const (
	Nothing     = nothing
	MessageOnly = messageOnly
	Change      = change
)

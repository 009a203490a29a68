package reporter

import (
	"time"

	"github.com/readygate/readygate/internal/reporter/check"
)

// Tasks compiles a configuration, like a reporter on the node n.
func Tasks(config *Config) error {
	_, err := config.tasks(check.Env{Node: "n", Variable: func(string) string { return "" }})
	return err
}

// Methods of metrics.
var (
	Observed = (*Metrics).observed
	Wrote    = (*Metrics).wrote
	Write    = (*Metrics).write
)

// Waiting returns how long a writer waits, by the time since its last write and its number of messageWrites.
func Waiting(urgency urgency, ago time.Duration, messageWrites, conditions int) time.Duration {
	w := &writer{heartbeat: func() time.Duration { return time.Hour }, wrote: time.Now().Add(-ago), spread: 1, messageWrites: messageWrites}
	return w.waiting(urgency, conditions)
}

// BackOff returns how long the writer waits after an error.
func BackOff(err error) time.Duration { return (&writer{}).backOff(err) }

// Urgencies.
const (
	Nothing     = nothing
	MessageOnly = messageOnly
	Change      = change
)

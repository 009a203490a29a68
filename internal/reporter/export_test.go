package reporter

import "github.com/readygate/readygate/internal/check"

// Tasks compiles a configuration, as a reporter on the node n does.
func Tasks(config *Config) error {
	_, err := config.tasks(check.Env{Node: "n", Variable: func(string) string { return "" }})
	return err
}

// MetricsOf writes metrics after these observations.
var (
	Waiting  = waiting
	Observed = (*Metrics).observed
	Wrote    = (*Metrics).wrote
	Write    = (*Metrics).write
)

// Urgencies.
const (
	Nothing = nothing
	Words   = words
	Change  = change
)

package reporter

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/readygate/readygate/internal/reporter/check"
)

// task is a check as it is run: compiled, with every default filled in.
type task struct {
	conditionType string
	check         check.Check
	kind          string // as http
	costly        bool
	interval      time.Duration
	timeout       time.Duration
	thresholds    Thresholds
	text          string // what it was made of: the same text is the same task
}

// tasks compiles the checks of a configuration. An error names the field that is wrong.
func (c *Config) tasks(env check.Env) ([]task, error) {
	var all []task
	for i := range c.Checks {
		one, err := c.Checks[i].task(env)
		if err != nil {
			return nil, fmt.Errorf("checks[%d].%w", i, err)
		}
		all = append(all, one)
	}
	return all, nil
}

func (c *CheckConfig) task(env check.Env) (task, error) {
	t := task{
		conditionType: c.ConditionType,
		kind:          c.Kind(),
		costly:        c.Costly(),
		interval:      valueOr(c.Interval, DefaultInterval),
		timeout:       valueOr(c.Timeout, c.defaultTimeout()),
		thresholds: Thresholds{
			Success:  count(c.SuccessThreshold, defaultSuccess),
			Failure:  count(c.FailureThreshold, defaultFailure),
			HoldDown: valueOr(c.HoldDown, c.defaultHoldDown()),
		},
	}
	text, err := json.Marshal(c)
	if err != nil {
		return task{}, err
	}
	t.text = string(text)
	env.Timeout, env.HoldDown = t.timeout, t.thresholds.HoldDown
	t.check, err = check.New(c.Spec, env)
	return t, err
}

func (c *CheckConfig) defaultTimeout() time.Duration {
	switch {
	case c.CNI != nil:
		return defaultCNITimeout
	case c.Peers != nil:
		return defaultPeersTimeout
	}
	return DefaultTimeout
}

func (c *CheckConfig) defaultHoldDown() time.Duration {
	if c.Peers != nil {
		return defaultPeersHoldDown
	}
	return defaultHoldDown
}

func valueOr(given *check.Duration, otherwise time.Duration) time.Duration {
	if given == nil {
		return otherwise
	}
	return given.Duration
}

func count(given *int, otherwise int) int {
	if given == nil {
		return otherwise
	}
	return *given
}

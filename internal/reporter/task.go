package reporter

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"github.com/readygate/readygate/internal/reporter/check"
)

// task is a compiled check with every default applied.
type task struct {
	conditionType string
	check         check.Check
	kind          string // e.g. http
	costly        bool
	interval      time.Duration
	timeout       time.Duration
	thresholds    Thresholds
	text          string // the configuration as JSON: equal text means an unchanged task
	recheck       chan struct{}
	stop          context.CancelFunc // set when it runs
}

// tasks compiles the checks of a configuration. An error names the invalid field.
func (c *Config) tasks(env check.Env) ([]*task, error) {
	var all []*task
	for i := range c.Checks {
		one, err := c.Checks[i].task(env)
		if err != nil {
			return nil, fmt.Errorf("checks[%d].%w", i, err)
		}
		all = append(all, one)
	}
	return all, nil
}

func (c *CheckConfig) task(env check.Env) (*task, error) {
	timeout, holdDown := DefaultTimeout, defaultHoldDown
	switch {
	case c.CNI != nil:
		timeout = defaultCNITimeout
	case c.Peers != nil:
		timeout, holdDown = defaultPeersTimeout, defaultPeersHoldDown
	}
	t := &task{
		conditionType: c.ConditionType,
		kind:          c.Kind(),
		costly:        c.Costly(),
		interval:      valueOr(c.Interval, DefaultInterval),
		timeout:       valueOr(c.Timeout, timeout),
		thresholds: Thresholds{
			Success:  ptr.Deref(c.SuccessThreshold, defaultSuccess),
			Failure:  ptr.Deref(c.FailureThreshold, defaultFailure),
			HoldDown: valueOr(c.HoldDown, holdDown),
		},
		recheck: make(chan struct{}, 1),
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	t.text = string(text)
	env.Timeout, env.HoldDown = t.timeout, t.thresholds.HoldDown
	t.check, err = check.New(c.Spec, env)
	return t, err
}

func valueOr(given *check.Duration, otherwise time.Duration) time.Duration {
	if given == nil {
		return otherwise
	}
	return given.Duration
}

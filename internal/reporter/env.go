package reporter

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/readygate/readygate/internal/reporter/check"
)

// Environment variables.
const (
	// NodeName is the name of the node. Unset: the node that the service account token names.
	NodeName = "NODE_NAME"
	// ConditionType is the type of the node condition, e.g. example.com/NetworkReady.
	ConditionType = "CONDITION_TYPE"
	// CheckEndpoint is the endpoint to check, e.g. http://localhost:9099/readiness.
	CheckEndpoint = "CHECK_ENDPOINT"
	// CheckInterval is the pause between two checks while the condition is True.
	CheckInterval = "CHECK_INTERVAL"
	// CheckTimeout is the maximum duration of one check.
	CheckTimeout = "CHECK_TIMEOUT"
	// HeartbeatPeriod is the time between two writes of unchanged conditions.
	HeartbeatPeriod = "HEARTBEAT_PERIOD"
	// ImpersonateNode makes the reporter send requests as the node if it is true.
	ImpersonateNode = "IMPERSONATE_NODE"
	// MetricsBindAddress is the address of the metrics and health endpoints.
	MetricsBindAddress = "METRICS_BIND_ADDRESS"
)

const defaultMetricsAddr = ":9445"

// Environment is the parsed environment, with defaults applied.
type Environment struct {
	Node        string
	Heartbeat   time.Duration
	MetricsAddr string // empty: no server
	AsNode      bool
	// Booted is the boot time of a simulated node; zero: the boot time of the machine.
	Booted time.Time
	// Check is the check that CONDITION_TYPE and CHECK_ENDPOINT describe; nil if no variable of a check is set.
	Check *CheckConfig
}

// ReadEnvironment reads the environment variables. An error names the invalid variable.
func ReadEnvironment(variable func(string) string) (Environment, error) {
	env := Environment{Node: variable(NodeName), MetricsAddr: defaultMetricsAddr}
	if env.Node != "" && (len(env.Node) > 253 || !nodeNameForm.MatchString(env.Node)) {
		return env, fmt.Errorf("%s is %q, must be the name of a node, e.g. spec.nodeName of the pod", NodeName, env.Node)
	}
	var err error
	if env.Heartbeat, err = durationIn(variable, HeartbeatPeriod, DefaultHeartbeat, minHeartbeat); err != nil {
		return env, err
	}
	switch as := variable(ImpersonateNode); as {
	case "true":
		env.AsNode = true
	case "", "false":
	default:
		return env, fmt.Errorf("%s is %q, must be true or false, e.g. %s=true", ImpersonateNode, as, ImpersonateNode)
	}
	if err := env.readMetricsAddr(variable(MetricsBindAddress)); err != nil {
		return env, err
	}
	env.Check, err = checkIn(variable)
	return env, err
}

func (e *Environment) readMetricsAddr(address string) error {
	switch address {
	case "":
		return nil
	case "0":
		e.MetricsAddr = ""
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%s is %q, must be an address with a port, e.g. %s=:9445 or 127.0.0.1:9445; 0 disables the server", MetricsBindAddress, address, MetricsBindAddress)
	}
	e.MetricsAddr = address
	return nil
}

// checkIn returns the check that the variables describe.
func checkIn(variable func(string) string) (*CheckConfig, error) {
	conditionType, endpoint := variable(ConditionType), variable(CheckEndpoint)
	if conditionType == "" && endpoint == "" && variable(CheckInterval) == "" && variable(CheckTimeout) == "" {
		return nil, nil
	}
	if err := conditionTypeFits(conditionType); err != nil {
		return nil, fmt.Errorf("%s %w", ConditionType, err)
	}
	if endpoint == "" {
		return nil, fmt.Errorf("%s is not set, must be the endpoint to check, e.g. %s=http://localhost:9099/readiness", CheckEndpoint, CheckEndpoint)
	}
	spec, err := check.Parse(endpoint)
	if err == nil {
		_, err = check.New(spec, check.Env{})
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", CheckEndpoint, err)
	}
	interval, err := durationIn(variable, CheckInterval, DefaultInterval, minInterval)
	if err != nil {
		return nil, err
	}
	timeout, err := durationIn(variable, CheckTimeout, DefaultTimeout, time.Millisecond)
	if err != nil {
		return nil, err
	}
	return &CheckConfig{ConditionType: conditionType, Interval: check.For(interval), Timeout: check.For(timeout), Spec: spec}, nil
}

func durationIn(variable func(string) string, name string, otherwise, least time.Duration) (time.Duration, error) {
	text := variable(name)
	if text == "" {
		return otherwise, nil
	}
	d := check.ParseDuration(text)
	return d.Duration, d.AtLeast(least, name, fmt.Sprintf("%s=%v", name, otherwise))
}

// errNoCheck is returned if neither a file nor the environment configures a check.
var errNoCheck = errors.New("no check configured: set " + ConditionType + " and " + CheckEndpoint +
	", e.g. " + ConditionType + "=example.com/NetworkReady " + CheckEndpoint + "=http://localhost:9099/readiness, or set --config=FILE")

package reporter

import (
	"bytes"
	"cmp"
	gojson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/internal/reporter/check"
)

// The kind of a configuration file.
const (
	ConfigAPIVersion = "readygate.dev/v1alpha1"
	ConfigKind       = "ReporterConfig"
)

// Config is the content of a reporter's configuration file.
type Config struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// heartbeatPeriod is the time between two writes of unchanged conditions, e.g. 5m. Absent: the
	// environment variable HEARTBEAT_PERIOD; if it is not set, 5m.
	HeartbeatPeriod *check.Duration `json:"heartbeatPeriod,omitempty"`
	// checks lists the checks; each sets its own condition.
	Checks []CheckConfig `json:"checks"`
}

// CheckConfig is one check and its node condition.
type CheckConfig struct {
	// conditionType is the type of the node condition, e.g. example.com/NetworkReady.
	ConditionType string `json:"conditionType"`
	// interval is the pause between two checks while the condition is True, e.g. 15s. Absent: 30s.
	// While the condition is not True, the pause is 500ms.
	Interval *check.Duration `json:"interval,omitempty"`
	// timeout is the maximum duration of one check, e.g. 2s. Absent: 2s; 5s for peers, 20s for cni.
	Timeout *check.Duration `json:"timeout,omitempty"`
	// successThreshold is the number of consecutive successes that set the condition to True. Absent: 1.
	SuccessThreshold *int `json:"successThreshold,omitempty"`
	// failureThreshold is the number of consecutive failures that set a True condition to False. Absent: 3.
	FailureThreshold *int `json:"failureThreshold,omitempty"`
	// holdDown is how long failures must continue before a True condition becomes False, so that
	// the restart of a component does not count as a failure. Absent: 15s; 60s for peers.
	HoldDown *check.Duration `json:"holdDown,omitempty"`

	check.Spec `json:",inline"`
}

// Example is a valid configuration.
const Example = `apiVersion: readygate.dev/v1alpha1
kind: ReporterConfig
checks:
- conditionType: example.com/NetworkReady
  interval: 15s
  http:
    url: http://localhost:9099/readiness
`

// Defaults of optional fields and variables.
const (
	DefaultInterval  = 30 * time.Second
	DefaultTimeout   = 2 * time.Second
	DefaultHeartbeat = 5 * time.Minute

	defaultCNITimeout    = 20 * time.Second
	defaultPeersTimeout  = 5 * time.Second
	defaultSuccess       = 1
	defaultFailure       = 3
	defaultHoldDown      = 15 * time.Second
	defaultPeersHoldDown = 60 * time.Second

	minInterval  = 100 * time.Millisecond
	minHeartbeat = time.Second
	maxChecks    = 100
)

// ParseConfig reads a configuration file. An error names the invalid field.
func ParseConfig(data []byte) (*Config, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, valid("the file is empty")
	}
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("the file is not YAML: %s", oneLine(err))
	}
	if documents := bytes.Count(append([]byte("\n"), data...), []byte("\n---")); documents > 1 || documents == 1 && !bytes.HasPrefix(bytes.TrimSpace(data), []byte("---")) {
		return nil, valid("the file has several YAML documents, must have one")
	}
	var config Config
	strict, err := json.UnmarshalStrict(asJSON, &config)
	if err = errors.Join(append(strict, typeError(err))...); err != nil {
		return nil, valid("%s", oneLine(err))
	}
	if err := config.validate(); err != nil {
		return nil, err
	}
	return &config, nil
}

// valid returns an error that ends with a valid file.
func valid(format string, args ...any) error {
	return fmt.Errorf("%s; a valid file:\n%s", fmt.Sprintf(format, args...), Example)
}

// typeError explains a type mismatch with the types of YAML instead of those of Go.
func typeError(err error) error {
	var mismatch *gojson.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return err
	}
	want := map[reflect.Kind]string{reflect.Slice: "a list", reflect.Struct: "an object", reflect.Pointer: "an object", reflect.Map: "an object with string values", reflect.String: "a string", reflect.Bool: "true or false", reflect.Int: "an integer"}[mismatch.Type.Kind()]
	field := strings.ReplaceAll(mismatch.Field, "Spec.", "") // an inlined struct has no name in the file
	return fmt.Errorf("%s is %s, must be %s", field, mismatch.Value, want)
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func (c *Config) validate() error {
	switch {
	case c.APIVersion != ConfigAPIVersion || c.Kind != ConfigKind:
		return valid("apiVersion is %q and kind %q, must be %s and %s", c.APIVersion, c.Kind, ConfigAPIVersion, ConfigKind)
	case len(c.Checks) == 0:
		return valid("checks is empty, must have at least one entry")
	case len(c.Checks) > maxChecks:
		return fmt.Errorf("checks has %d entries, must have at most %d", len(c.Checks), maxChecks)
	}
	if err := c.HeartbeatPeriod.AtLeast(minHeartbeat, "heartbeatPeriod", "5m"); err != nil {
		return err
	}
	seen := map[string]int{}
	for i := range c.Checks {
		one := &c.Checks[i]
		if err := one.validate(); err != nil {
			return fmt.Errorf("checks[%d].%w", i, err)
		}
		if first, twice := seen[one.ConditionType]; twice {
			return fmt.Errorf("checks[%d].conditionType is %q, which checks[%d] uses: two checks cannot write the same condition; set another type and require both in the rule", i, one.ConditionType, first)
		}
		seen[one.ConditionType] = i
	}
	return nil
}

func (c *CheckConfig) validate() error {
	if err := conditionTypeFits(c.ConditionType); err != nil {
		return fmt.Errorf("conditionType %w", err)
	}
	err := cmp.Or(
		c.Interval.AtLeast(minInterval, "interval", "15s"),
		c.Timeout.AtLeast(time.Millisecond, "timeout", "2s"),
		c.HoldDown.AtLeast(0, "holdDown", "15s"),
	)
	if err != nil {
		return err
	}
	for _, field := range []struct {
		name  string
		value *int
	}{{"successThreshold", c.SuccessThreshold}, {"failureThreshold", c.FailureThreshold}} {
		if field.value != nil && *field.value < 1 {
			return fmt.Errorf("%s is %d, must be at least 1, e.g. %s: 3", field.name, *field.value, field.name)
		}
	}
	return nil
}

package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/readygate/readygate/internal/plugin/terminal"
)

// Options configure the demo.
type Options struct {
	// Scenario is the name of a scenario, or the path of a file. Empty: DefaultScenario.
	Scenario string
	// Root is the root of the repository.
	Root string
	// Binaries is the directory of kube-apiserver, kwok and the other binaries.
	Binaries string
	// Logs is the directory of the log files, one per scenario, with the logs of the manager, the agents and the reporters.
	Logs string

	// Once ends the demo at the end of the scenario. Otherwise it runs on until it is interrupted, if Out is a terminal.
	Once bool

	Out *os.File
}

// DefaultScenario is played if Options.Scenario is empty.
const DefaultScenario = "cni-guide"

// ErrInterrupted is returned if the user stopped the demo before the end of the scenario.
var ErrInterrupted = errors.New("interrupted")

// Run plays the scenario. It returns nil if every expectation was met and every
// invariant held.
func (o *Options) Run(ctx context.Context) error {
	if o.Scenario == "" {
		o.Scenario = DefaultScenario
	}
	script, err := readScript(o.Root, o.Scenario)
	if err != nil {
		return err
	}
	log, err := openLog(o.Logs, o.Scenario)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // only written for the user
	dir, err := os.MkdirTemp("", "readygate-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	isTerminal := terminal.IsTerminal(o.Out)
	s := &session{
		Options: o, script: script, log: log, dir: dir, stays: isTerminal && !o.Once, agents: map[string]*prometheus.Registry{},
		output: &output{
			screen: terminal.NewScreen(o.Out, isTerminal), style: terminal.NewStyle(isTerminal), draws: isTerminal, title: script.Title, printed: map[string]string{},
		},
	}
	return s.run(ctx)
}

// openLog creates the log of a scenario, or truncates it.
func openLog(dir, scenario string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return os.Create(filepath.Join(dir, strings.TrimSuffix(filepath.Base(scenario), ".yaml")+".log"))
}

// about formats a duration, rounded to ten seconds.
func about(d time.Duration) string {
	return fmt.Sprintf("about %v", (d + 15*time.Second).Round(10*time.Second))
}

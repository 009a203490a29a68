package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/readygate/readygate/internal/plugin/terminal"
)

// Options say what is played, and where.
type Options struct {
	// Scenario is the name of a scenario, or the path of a file. Empty: the CNI guide.
	Scenario string
	// Root is the root of the repository.
	Root string
	// Binaries is the directory of kube-apiserver, kwok and the others.
	Binaries string
	// Logs is the directory of the log of each scenario: what manager, reporters and KWOK say.
	Logs string

	// Existing says that the story is played on the cluster that KUBECONFIG names.
	Existing bool
	// Agreed says that the user agrees to that; else they are asked.
	Agreed bool
	// Clean says that nothing is played: what a killed demo left there is taken back.
	Clean bool

	// Once says that the demo ends when the story does, and not when it is interrupted.
	Once bool

	In  io.Reader
	Out *os.File
}

// DefaultScenario is the main story.
const DefaultScenario = "cni-guide"

var (
	// ErrInterrupted says that the user has ended the demo before the story was over.
	ErrInterrupted = errors.New("interrupted")
	// ErrRefused says that the user does not agree to play on an existing cluster.
	ErrRefused = errors.New("nothing was done")
)

// Run plays the story. It returns nil if everything that was expected came, and every
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
	defer log.Close() //nolint:errcheck // nothing is read from it here
	dir, err := os.MkdirTemp("", "readygate-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // only the user's own directory for such things is left
	isTerminal := terminal.IsTerminal(o.Out)
	s := &show{
		Options: o, script: script, log: log, dir: dir,
		teller: &teller{
			screen: terminal.NewScreen(o.Out, isTerminal), style: terminal.NewStyle(isTerminal), draws: isTerminal, title: script.Title,
		},
	}
	if o.Clean && !o.Existing {
		return fmt.Errorf("%w: set KUBECONFIG to the cluster that is to be cleaned", ErrRefused)
	}
	if o.Clean {
		defer s.teller.end()
		return s.clean(ctx)
	}
	return s.run(ctx, isTerminal)
}

// agree tells the user what will be done to their cluster, and asks.
func (o *Options) agree(ctx context.Context, say func(...string), plan []string) error {
	say(plan...)
	if o.Agreed {
		return nil
	}
	in, ok := o.In.(*os.File)
	if !ok || !terminal.IsTerminal(in) {
		return fmt.Errorf("%w: say DEMO_CLUSTER=yes to play there, or unset KUBECONFIG to play on a control plane of the demo's own", ErrRefused)
	}
	say("", "Play there? Type yes:")
	answered := make(chan string, 1)
	go func() {
		answer := make([]byte, 16)
		n, _ := in.Read(answer) // nothing is no
		answered <- strings.TrimSpace(string(answer[:n]))
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case answer := <-answered:
		if answer != "yes" {
			return fmt.Errorf("%w: unset KUBECONFIG to play on a control plane of the demo's own", ErrRefused)
		}
	}
	return nil
}

// openLog empties the log of a scenario, or makes it.
func openLog(dir, scenario string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return os.Create(filepath.Join(dir, strings.TrimSuffix(filepath.Base(scenario), ".yaml")+".log"))
}

// about says how long something takes, to the ten seconds.
func about(d time.Duration) string {
	return fmt.Sprintf("about %v", (d + 15*time.Second).Round(10*time.Second))
}

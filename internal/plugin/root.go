package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/readygate/readygate/internal/plugin/terminal"
)

const about = `kubectl readiness shows which nodes are held by NodeReadinessRules, which pods wait for their
network by PodReadinessRules, and why, and checks rules before they are applied. It only ever
reads, with your own rights: get, list and watch on nodes and nodereadinessrules are enough, for
pods also on pods and podreadinessrules. What it may not see, it says.

Exit codes:
  0  fine; also when nodes are held or pods wait
  1  something went wrong
  2  the command line is wrong
  3  lint found errors, or warnings with --strict`

// session is what all verbs share.
type session struct {
	genericiooptions.IOStreams
	cluster *genericclioptions.ConfigFlags
	now     func() time.Time
	started bool

	verbosity verbosity
}

// Run is the whole program. It returns the exit code.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	ctrl.SetLogger(klog.Background())
	silence()
	s := newSession(streams)
	root := s.root()
	root.SetArgs(args)
	ran, err := root.ExecuteContextC(ctx)
	code := exitCode(err, s.started)
	if err != nil && !errors.Is(err, errFindings) {
		_, _ = fmt.Fprintln(streams.ErrOut, "error: "+terminal.Clean(inWords(err)))
	}
	if code == ExitUsage {
		_, _ = fmt.Fprintf(streams.ErrOut, "See '%s --help'.\n", ran.CommandPath())
	}
	return code
}

// inWords is an error, and what to do if the cluster does not answer.
func inWords(err error) string {
	if utilnet.IsConnectionRefused(err) || utilnet.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded) {
		return err.Error() + ": the cluster does not answer; see kubectl cluster-info, or choose another with --context"
	}
	return err.Error()
}

// New is the command with all its verbs, for the documentation.
func New(streams genericiooptions.IOStreams) *cobra.Command { return newSession(streams).root() }

func newSession(streams genericiooptions.IOStreams) *session {
	return &session{IOStreams: streams, cluster: genericclioptions.NewConfigFlags(true), now: time.Now}
}

func (s *session) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-readiness",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl readiness"},
		Short:         "See which nodes are held, which pods wait, and why",
		Long:          about,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(*cobra.Command, []string) {
			s.started = true
			s.verbosity.apply()
		},
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.ErrOut)
	s.cluster.AddFlags(root.PersistentFlags())
	root.PersistentFlags().VarP(&s.verbosity, "v", "v", "Log what the client does, at this level. Without it nothing is logged.")
	if cacheDir := root.PersistentFlags().Lookup("cache-dir"); cacheDir != nil {
		cacheDir.DefValue = "$HOME/.kube/cache" // as help shows it, on every machine
	}
	root.AddCommand(s.status(), s.nodes(), s.pods(), s.why(), s.lint(), s.simulate(), s.policy(), s.watch(), s.ui(), s.version(), options())
	root.InitDefaultCompletionCmd()
	addKubectlCompletion(root)
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
	return root
}

// usageTemplate names the command that lists the flags of all commands, in place of listing
// all of them in every help.
func usageTemplate(template string) string {
	template = strings.Replace(template, "{{if .HasAvailableLocalFlags}}", "{{if and .HasParent .HasAvailableLocalFlags}}", 1)
	before, rest, _ := strings.Cut(template, "{{if .HasAvailableInheritedFlags}}")
	_, after, _ := strings.Cut(rest, "{{end}}")
	return before + `

Flags of kubectl (--context, --kubeconfig, --request-timeout …): "kubectl readiness options"` + after
}

// options lists the flags that every command has, as kubectl options does.
func options() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that all commands have",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), "These flags can be passed to any command:\n\n", cmd.Root().PersistentFlags().FlagUsages())
			return err
		},
	}
}

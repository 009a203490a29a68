package plugin

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/readygate/readygate/internal/plugin/terminal"
)

const about = `kubectl readiness shows which nodes are held by NodeReadinessRules, which pods wait for their
network because of PodReadinessRules, and why. It also checks rules before you apply them.

The command only reads, with your own permissions. It needs get, list and watch on nodes and
nodereadinessrules, and for pods also on pods and podreadinessrules. The output lists what could
not be read.

Exit codes:
  0  success, also if nodes are held or pods wait
  1  error
  2  wrong command line
  3  lint found errors, or warnings with --strict`

// session holds the streams and flags that all verbs share.
type session struct {
	genericiooptions.IOStreams
	cluster *genericclioptions.ConfigFlags
	started bool
	logs    bool // -v is set: the client logs
}

// Run runs the program and returns the exit code.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	ctrl.SetLogger(klog.Background())
	s := newSession(streams)
	root := s.root()
	root.SetArgs(args)
	ran, err := root.ExecuteContextC(ctx)
	code := exitCode(err, s.started)
	if err != nil && !errors.Is(err, errFindings) {
		text := err.Error()
		if utilnet.IsConnectionRefused(err) || utilnet.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded) {
			text += ": the cluster does not respond; check kubectl cluster-info, or select another cluster with --context"
		}
		_, _ = fmt.Fprintln(streams.ErrOut, "error: "+terminal.Clean(text))
	}
	if code == ExitUsage {
		_, _ = fmt.Fprintf(streams.ErrOut, "See '%s --help'.\n", ran.CommandPath())
	}
	return code
}

// New returns the root command with all verbs, for the generated documentation.
func New(streams genericiooptions.IOStreams) *cobra.Command { return newSession(streams).root() }

func newSession(streams genericiooptions.IOStreams) *session {
	return &session{IOStreams: streams, cluster: genericclioptions.NewConfigFlags(true)}
}

func (s *session) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-readiness",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl readiness"},
		Short:         "Show which nodes are held, which pods wait, and why",
		Long:          about,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			s.started, s.logs = true, cmd.Flags().Changed("v")
			klog.LogToStderr(s.logs)
		},
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.ErrOut)
	s.cluster.AddFlags(root.PersistentFlags())
	addVerbosity(root)
	if cacheDir := root.PersistentFlags().Lookup("cache-dir"); cacheDir != nil {
		cacheDir.DefValue = "$HOME/.kube/cache" // the same help text on every machine
	}
	root.AddCommand(s.status(), s.nodes(), s.pods(), s.why(), s.lint(), s.simulate(), s.policy(), s.watch(), s.ui(), s.version(), options())
	for _, verb := range root.Commands() {
		if verb.Args == nil {
			verb.Args = cobra.NoArgs
		}
	}
	root.InitDefaultCompletionCmd()
	addKubectlCompletion(root)
	root.SetUsageTemplate(usageTemplate(root.UsageTemplate()))
	return root
}

// usageTemplate names the command that lists the global flags, instead of listing them in each help.
func usageTemplate(template string) string {
	template = strings.Replace(template, "{{if .HasAvailableLocalFlags}}", "{{if and .HasParent .HasAvailableLocalFlags}}", 1)
	before, rest, _ := strings.Cut(template, "{{if .HasAvailableInheritedFlags}}")
	_, after, _ := strings.Cut(rest, "{{end}}")
	return before + `

Flags of kubectl (--context, --kubeconfig, --request-timeout …): "kubectl readiness options"` + after
}

// options lists the global flags, as kubectl options does.
func options() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that all commands accept",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), "These flags can be passed to any command:\n\n", cmd.Root().PersistentFlags().FlagUsages())
			return err
		},
	}
}

// Exit codes. Users and scripts depend on them.
const (
	// ExitFine means success.
	ExitFine = 0
	// ExitError means that the command failed.
	ExitError = 1
	// ExitUsage means that the command line is wrong.
	ExitUsage = 2
	// ExitFindings means that lint found errors, or warnings with --strict.
	ExitFindings = 3
)

// usageError is a mistake in the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errFindings ends a command that has printed its findings. It is not printed.
var errFindings = errors.New("lint found errors")

// exitCode returns the exit code for an error. If the command did not start, the command line was wrong.
func exitCode(err error, started bool) int {
	var usage usageError
	switch {
	case err == nil:
		return ExitFine
	case errors.Is(err, errFindings):
		return ExitFindings
	case errors.As(err, &usage), !started:
		return ExitUsage
	}
	return ExitError
}

// addVerbosity adds kubectl's flag -v, and discards the client's log unless the flag is set: commands print what users
// need themselves.
func addVerbosity(cmd *cobra.Command) {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	_ = flags.Set("stderrthreshold", "FATAL") // a value of klog

	level := flags.Lookup("v")
	level.Usage = "Log level of the Kubernetes client. If not set, nothing is logged."
	cmd.PersistentFlags().AddGoFlag(level)
}

// addKubectlCompletion adds the command that prints the completion script for "kubectl readiness".
func addKubectlCompletion(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.AddCommand(&cobra.Command{
			Use:   "kubectl",
			Short: "Generate the script that completes this plugin's commands in kubectl",
			Long: `Prints a script. If shell completion of kubectl itself works, save the script on your PATH as
kubectl_complete-readiness and make it executable: "kubectl readiness <TAB>" then completes.`,
			Example: "  kubectl readiness completion kubectl >/usr/local/bin/kubectl_complete-readiness\n  chmod +x /usr/local/bin/kubectl_complete-readiness",
			Args:    cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				_, err := fmt.Fprint(cmd.OutOrStdout(), "#!/bin/sh\nexec kubectl readiness __complete \"$@\"\n")
				return err
			},
		})
	}
}

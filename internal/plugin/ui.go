package plugin

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/readygate/readygate/internal/plugin/dashboard"
	"github.com/readygate/readygate/internal/plugin/terminal"
)

func (s *session) ui() *cobra.Command {
	var port int
	var open bool
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Serve the dashboard on this machine, with your permissions",
		Long: `Serves a page on localhost that shows rules, nodes and waiting pods and updates live, and opens it in
your browser. The page shows what your permissions allow; pods are shown if you may list them.
Ctrl-C stops the command.`,
		Example: "  kubectl readiness ui\n  kubectl readiness ui --port 8080 --open=false",
	}
	cmd.Flags().IntVar(&port, "port", 0, "Port on localhost. 0 selects a free port.")
	cmd.Flags().BoolVar(&open, "open", true, "Open the page in your browser.")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		source, err := s.source()
		if err != nil {
			return err
		}
		fleet, err := source.Follow(ctx, true)
		if err != nil {
			return err
		}
		listener, err := dashboard.Listen(port)
		if err != nil {
			return err
		}
		for _, unseen := range fleet.Snapshot().Unseen {
			_, _ = fmt.Fprintln(s.ErrOut, "could not be read: "+terminal.Clean(unseen))
		}
		url := "http://" + listener.Addr().String() + "/"
		_, _ = fmt.Fprintf(s.Out, "Dashboard: %s (Ctrl-C stops it)\n", url)
		if open && openBrowser(ctx, url) != nil {
			_, _ = fmt.Fprintln(s.ErrOut, "Could not start a browser: open the address yourself.")
		}
		return dashboard.New(dashboard.Options{
			Fleet: fleet, Title: s.contextName(), Explanation: source.Explanation, PodExplanation: source.PodExplanation,
		}).Serve(ctx, listener)
	}
	return cmd
}

// contextName returns the kubeconfig's current context; empty if there is none.
func (s *session) contextName() string {
	if name := *s.cluster.Context; name != "" {
		return name
	}
	config, err := s.cluster.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return ""
	}
	return config.CurrentContext
}

// openBrowser opens the page in the user's browser.
func openBrowser(ctx context.Context, url string) error {
	opener := map[string][]string{
		"darwin":  {"open"},
		"windows": {"rundll32", "url.dll,FileProtocolHandler"},
	}[runtime.GOOS]
	if opener == nil {
		opener = []string{"xdg-open"}
	}
	return exec.CommandContext(ctx, opener[0], append(opener[1:], url)...).Start()
}

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
		Short: "Serve the dashboard on this machine, with your rights",
		Long: `Serves a page that shows rules, nodes and pods that wait, live, on localhost only, and opens it
in your browser. It shows what you may see; pods are counted if you may list them. Ctrl-C ends
it.`,
		Example: "  kubectl readiness ui\n  kubectl readiness ui --port 8080 --open=false",
	}
	cmd.Flags().IntVar(&port, "port", 0, "Port on localhost; 0 takes any that is free.")
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
			_, _ = fmt.Fprintln(s.ErrOut, "not seen: "+terminal.Clean(unseen))
		}
		url := "http://" + listener.Addr().String() + "/"
		_, _ = fmt.Fprintf(s.Out, "The dashboard is at %s (Ctrl-C ends it)\n", url)
		if open && openBrowser(ctx, url) != nil {
			_, _ = fmt.Fprintln(s.ErrOut, "No browser could be started: open the address yourself.")
		}
		return dashboard.New(dashboard.Options{
			Fleet: fleet, Title: s.contextName(), Explanation: source.Explanation, PodExplanation: source.PodExplanation,
		}).Serve(ctx, listener)
	}
	return cmd
}

// contextName is the name of the kubeconfig's context that is in use; empty if there is none.
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

// openBrowser asks the desktop to show the page.
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

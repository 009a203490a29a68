package plugin

import (
	"fmt"

	"github.com/spf13/cobra"
)

// addKubectlCompletion adds the script that lets kubectl itself complete "kubectl readiness".
func addKubectlCompletion(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.AddCommand(&cobra.Command{
			Use:   "kubectl",
			Short: "Generate the script that kubectl asks for completions of this plugin",
			Long: `Prints a script. Where kubectl's own completion works, put it on your PATH as
kubectl_complete-readiness and make it executable; "kubectl readiness <TAB>" works then.`,
			Example: "  kubectl readiness completion kubectl >/usr/local/bin/kubectl_complete-readiness\n  chmod +x /usr/local/bin/kubectl_complete-readiness",
			Args:    cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				_, err := fmt.Fprint(cmd.OutOrStdout(), "#!/bin/sh\nexec kubectl readiness __complete \"$@\"\n")
				return err
			},
		})
	}
}

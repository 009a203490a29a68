// Command clidocs writes the page about kubectl readiness from the command itself.
//
//	clidocs docs/cli.md
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/readygate/readygate/internal/plugin"
)

const intro = `<!-- Generated from internal/plugin by make generate. Do not edit. -->
# kubectl readiness

%s

Install it: put the binary ` + "`kubectl-readiness`" + ` (` + "`make build`" + ` writes it into ` + "`bin/`" + `) on your PATH; kubectl finds it there.
A role that is enough:

` + "```yaml" + `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: readiness-viewer
rules:
- apiGroups: ["readiness.node.x-k8s.io"]
  resources: ["nodereadinessrules"]
  verbs: ["get", "list", "watch"]
- apiGroups: ["readygate.dev"]
  resources: ["podreadinessrules"]
  verbs: ["get", "list", "watch"]
- apiGroups: [""]
  resources: ["nodes", "events", "pods", "namespaces"] # without events, pods and namespaces less is seen, and that is said
  verbs: ["get", "list", "watch"]
- apiGroups: ["coordination.k8s.io"]
  resources: ["leases"] # of agents on nodes, in namespace readygate-system
  verbs: ["get", "list"]
- apiGroups: ["apps"]
  resources: ["deployments"] # of the manager, in namespace readygate-system: for version and policy
  verbs: ["get"]
` + "```" + `

With ` + "`-o json`" + ` and ` + "`-o yaml`" + ` the answers are for programs. The flags of kubectl (` + "`--context`, `--kubeconfig`, `--as`, `--request-timeout`" + ` …) work as in
kubectl; ` + "`kubectl readiness options`" + ` lists them.
`

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "clidocs: name the file to write, e.g. clidocs docs/cli.md")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(page()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "clidocs:", err)
		os.Exit(1)
	}
}

// page is the whole page.
func page() string {
	root := plugin.New(genericiooptions.IOStreams{In: os.Stdin, Out: io.Discard, ErrOut: io.Discard})
	var text strings.Builder
	fmt.Fprintf(&text, intro, paragraphs(root.Long))
	for _, command := range root.Commands() {
		if command.IsAvailableCommand() && command.Name() != "help" && command.Name() != "options" {
			fmt.Fprintf(&text, "\n## %s\n\n%s", command.Name(), chapter(command))
		}
	}
	return text.String()
}

// chapter is what there is to say about one verb.
func chapter(command *cobra.Command) string {
	if command.Name() == "completion" {
		var names []string
		for _, shell := range command.Commands() {
			names = append(names, "`"+shell.Name()+"`")
		}
		return fmt.Sprintf("%s: %s. `kubectl readiness completion SHELL --help` says where to put it.\n", command.Short, strings.Join(names, ", "))
	}
	text := fmt.Sprintf("%s.\n\n```\n%s\n```\n", command.Short, command.UseLine())
	if command.Long != "" {
		text += fmt.Sprintf("\n%s\n", paragraphs(command.Long))
	}
	if command.Example != "" {
		text += fmt.Sprintf("\n```sh\n%s\n```\n", unindent(command.Example))
	}
	return text + fmt.Sprintf("\n```\n%s```\n", command.LocalNonPersistentFlags().FlagUsages())
}

// paragraphs joins the lines of text that was broken for terminals. Lines that are indented
// become a block.
func paragraphs(text string) string {
	var out []string
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		head, block, has := strings.Cut(paragraph, "\n  ")
		joined := strings.ReplaceAll(head, "\n", " ")
		if has {
			joined += "\n\n```\n" + unindent("  "+block) + "\n```"
		}
		out = append(out, joined)
	}
	return strings.Join(out, "\n\n")
}

func unindent(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

// Command clidocs writes the page about kubectl readiness from the command itself.
//
//	clidocs docs/reference/cli.md
package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/readygate/readygate/internal/plugin"
)

//go:embed intro.md
var intro string

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "clidocs: name the file to write, e.g. clidocs docs/reference/cli.md")
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

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

//go:embed cli.md
var cliIntro string

// commandLine is the page of kubectl readiness.
func commandLine() string {
	root := plugin.New(genericiooptions.IOStreams{In: os.Stdin, Out: io.Discard, ErrOut: io.Discard})
	var text strings.Builder
	fmt.Fprintf(&text, cliIntro, paragraphs(root.Long))
	for _, command := range root.Commands() {
		if command.IsAvailableCommand() && command.Name() != "help" && command.Name() != "options" {
			fmt.Fprintf(&text, "\n## %s\n\n%s", command.Name(), chapter(command))
		}
	}
	return text.String()
}

// chapter describes one verb.
func chapter(command *cobra.Command) string {
	if command.Name() == "completion" {
		var names []string
		for _, shell := range command.Commands() {
			names = append(names, "`"+shell.Name()+"`")
		}
		return fmt.Sprintf("%s: %s. `kubectl readiness completion SHELL --help` prints where to put it.\n", command.Short, strings.Join(names, ", "))
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

// paragraphs joins the lines of a text that is wrapped for terminals. Indented lines become a block.
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

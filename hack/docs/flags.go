package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/readygate/readygate/internal/latch"
	"github.com/readygate/readygate/internal/manager"
	"github.com/readygate/readygate/internal/manager/uninstall"
	"github.com/readygate/readygate/internal/podgate"
	"github.com/readygate/readygate/internal/reporter"
)

const flagsIntro = `<!-- Generated from the programs by make generate. Do not edit. -->
# Flags of every program

Which flags and variables does each program take? ` + "`--help`" + ` prints the same text.

- The flags of the plugin are on [a page of their own](cli.md).
- In the chart, ` + "`manager.extraArgs`, `podgate.extraArgs` and `reporters[].args`" + ` add flags: [chart values](chart-values.md).
- Every program also has ` + "`--version`" + `, which prints the version and exits.
`

// programFlags is the page of the flags of every program in a cluster.
func programFlags() string {
	for _, variable := range []string{"NODE_NAME", "POD_NAME", "KUBECONFIG"} {
		_ = os.Unsetenv(variable) // defaults of flags
	}
	var text strings.Builder
	text.WriteString(flagsIntro)
	for _, program := range []struct {
		name, about string
		options     interface{ AddFlags(*pflag.FlagSet) }
	}{
		{"readygate-manager", "Enforces rules. One manager leads; the others are standbys.", manager.NewOptions()},
		{"readygate-manager cleanup", "Removes what Readygate added to the cluster, and exits. The chart runs it before the release is uninstalled.", uninstall.NewOptions()},
		{"readygate-podgate", "Opens the gates of the pods on its node.", podgate.NewOptions()},
		{"readygate-reporter", "Sets node conditions. [Its page](reporter.md) describes checks and their configuration.", &reporter.Options{}},
	} {
		flags := pflag.NewFlagSet(program.name, pflag.ContinueOnError)
		program.options.AddFlags(flags)
		fmt.Fprintf(&text, "\n## %s\n\n%s\n\n%s", program.name, program.about, flagList(flags))
	}
	usage, _, _ := strings.Cut(reporter.Usage, "\nFlags:\n")
	fmt.Fprintf(&text, "\nVariables:\n\n```\n%s\n```\n", strings.TrimSpace(usage))
	fmt.Fprintf(&text, "\n## readygate-latch\n\nThe init container of rules with `startHold`. The admission policy sets its variables.\n\n```\n%s\n```\n", latch.Usage)
	return text.String()
}

// flagList is a list of flags with their defaults.
func flagList(flags *pflag.FlagSet) string {
	var text strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		kind, usage := pflag.UnquoteUsage(f)
		if kind == "" {
			kind = f.Value.Type()
		}
		fmt.Fprintf(&text, "- `--%s` (%s", f.Name, kind)
		if f.DefValue != "" && f.DefValue != "[]" {
			fmt.Fprintf(&text, ", default `%s`", f.DefValue)
		}
		fmt.Fprintf(&text, "): %s\n", strings.Join(strings.Fields(usage), " "))
	})
	return text.String()
}

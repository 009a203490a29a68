package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/readygate/readygate/internal/plugin/print"
)

// output is the output format of a command.
type output struct {
	format  string
	formats []string
}

// addOutput adds the flag -o.
func addOutput(cmd *cobra.Command, formats ...string) *output {
	o := &output{formats: formats}
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "Output format: "+strings.Join(formats, ", ")+". If not set, a table for reading.")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if o.format != "" && !slices.Contains(formats, o.format) {
			return usagef("--output is %q, must be one of %s", o.format, strings.Join(formats, ", "))
		}
		return nil
	}
	return o
}

func (o *output) wide() bool { return o.format == "wide" }

// write writes the value as JSON or YAML, or the lines if no such format is set.
func (o *output) write(w io.Writer, value any, lines func() print.Lines) error {
	switch o.format {
	case "json", "yaml":
		data, err := encode(value, o.format == "yaml")
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	}
	return writeLines(w, lines())
}

func writeLines(w io.Writer, lines print.Lines) error {
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// encode returns JSON or YAML without control characters for a terminal. encoding/json leaves some of them unescaped.
func encode(value any, asYAML bool) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	var plain strings.Builder
	for _, r := range buffer.String() {
		if r >= 0x7f && r <= 0x9f {
			fmt.Fprintf(&plain, `\u%04x`, r)
			continue
		}
		plain.WriteRune(r)
	}
	if asYAML {
		return yaml.JSONToYAML([]byte(plain.String()))
	}
	return []byte(plain.String()), nil
}

// Command docs generates the pages of docs/reference that describe the command line of every program and the
// values of the chart. It reads the flag sets of the programs, and values.yaml with its schema. It never describes
// a flag or a value itself.
//
//	docs charts/readygate docs/reference
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "docs: name the chart and the directory to write to, e.g. docs charts/readygate docs/reference")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func write(chart, dir string) error {
	values, err := chartValues(chart)
	if err != nil {
		return fmt.Errorf("reading the values of %s: %w", chart, err)
	}
	for name, text := range map[string]string{"cli.md": commandLine(), "flags.md": programFlags(), "chart-values.md": values} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

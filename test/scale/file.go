package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/readygate/readygate/test/scale/report"
)

// save writes a run to a file; no file, nothing to do.
func save(path string, run report.Run) error {
	if path == "" {
		return nil
	}
	data, err := json.MarshalIndent(run, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

func load(path string) (run report.Run, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return run, err
	}
	if err := json.Unmarshal(data, &run); err != nil {
		return run, fmt.Errorf("reading %s: %w", path, err)
	}
	return run, nil
}

func newReportCommand() *cobra.Command {
	var in, notes, docs string
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Write the page and the pictures of a run",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			run, err := load(in)
			if err != nil {
				return err
			}
			words, err := readNotes(notes)
			if err != nil {
				return err
			}
			for name, data := range map[string][]byte{
				"performance.md": report.Page(run, words), report.GrowthFile: report.Growth(run), report.RatiosFile: report.Ratios(run),
			} {
				if err := os.WriteFile(filepath.Join(docs, name), data, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&in, "in", "docs/performance.json", "The run, as run --out wrote it.")
	cmd.Flags().StringVar(&notes, "notes", "test/scale/notes", "Directory with what is said by hand, as Markdown.")
	cmd.Flags().StringVar(&docs, "docs", "docs", "Directory to write to.")
	return cmd
}

// readNotes reads what is said by hand, by the name of the file without its ending.
func readNotes(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return nil, err
	}
	words := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		words[strings.TrimSuffix(filepath.Base(file), ".md")] = string(data)
	}
	return words, nil
}

// private are flags that say where files are: nobody else has them there.
var private = []string{"manager", "out", "append"}

// commandOf is the command line of a run for others to read: of controllers only the name.
func commandOf(flags *pflag.FlagSet) string {
	words := []string{"go run ./test/scale run"}
	flags.Visit(func(f *pflag.Flag) {
		list, several := f.Value.(pflag.SliceValue)
		switch {
		case slices.Contains(private, f.Name):
		case f.Name == "controller":
			for _, text := range list.GetSlice() {
				name, _, _ := strings.Cut(text, "=")
				words = append(words, fmt.Sprintf("--controller %s=...", name))
			}
		case several:
			words = append(words, fmt.Sprintf("--%s %s", f.Name, strings.Join(list.GetSlice(), ",")))
		case f.Value.String() == "true":
			words = append(words, "--"+f.Name)
		default:
			words = append(words, fmt.Sprintf("--%s %v", f.Name, f.Value))
		}
	})
	return strings.Join(words, " ")
}

// thisMachine is what the numbers depend on.
func thisMachine() report.Machine {
	m := report.Machine{CPU: runtime.GOARCH, Cores: runtime.NumCPU(), System: runtime.GOOS, Go: runtime.Version()}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		m.Memory = int64(info.Totalram) * int64(info.Unit)
	}
	data, _ := os.ReadFile("/proc/cpuinfo") // it is only for the reader
	for line := range strings.Lines(string(data)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
			break
		}
	}
	return m
}

// versionOf is what the manager says of itself.
func versionOf(ctx context.Context, manager string) string {
	if manager == "" {
		return ""
	}
	out, _ := exec.CommandContext(ctx, manager, "--version").Output() // an old one may not know the flag
	return strings.TrimSpace(string(out))
}

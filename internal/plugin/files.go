package plugin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/readygate/readygate/internal/plugin/lint"
)

// files are the manifests that the user passes.
type files struct {
	names     []string
	recursive bool
}

// addFiles adds the flags -f and -R, as in kubectl apply.
func addFiles(cmd *cobra.Command) *files {
	f := &files{}
	cmd.Flags().StringSliceVarP(&f.names, "filename", "f", nil, "File or directory with manifests, or - for standard input. Can be repeated.")
	cmd.Flags().BoolVarP(&f.recursive, "recursive", "R", false, "Also read the subdirectories of the directories given with -f.")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	return f
}

// Input above these limits is not a manifest or a dump of a cluster, but a mistake such as a device or an image.
const (
	maxManifest = 16 << 20
	maxDump     = 1 << 30
)

var extensions = []string{".yaml", ".yml", ".json"}

// read returns the content of all files.
func (f *files) read(stdin io.Reader) ([]lint.Input, error) {
	if len(f.names) == 0 {
		return nil, usagef("no manifests given: use -f with a file, a directory, or - for standard input")
	}
	var inputs []lint.Input
	for _, name := range f.names {
		if name == "-" {
			input, err := readAll("standard input", stdin, maxManifest)
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, input)
			continue
		}
		paths, err := f.paths(name)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			input, err := readFile(path, maxManifest)
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, input)
		}
	}
	return inputs, nil
}

// paths returns the file itself, or the manifests of a directory.
func (f *files) paths(root string) (paths []string, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && !f.recursive:
			return filepath.SkipDir
		case !entry.IsDir() && (path == root || slices.Contains(extensions, filepath.Ext(path))):
			paths = append(paths, path)
		}
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(paths) == 0:
		return nil, fmt.Errorf("file %s does not exist: use a file, a directory, or - for standard input", root)
	case err == nil && len(paths) == 0:
		return nil, fmt.Errorf("%s has no files that end in .yaml, .yml or .json: use another directory, or read its subdirectories with -R", root)
	}
	return paths, err
}

func readFile(path string, limit int64) (lint.Input, error) {
	file, err := os.Open(path)
	if err != nil {
		return lint.Input{}, err
	}
	defer func() { _ = file.Close() }()
	return readAll(path, file, limit)
}

// readAll reads up to the limit. Devices such as /dev/zero have no end.
func readAll(name string, from io.Reader, limit int64) (lint.Input, error) {
	data, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is larger than %d MiB: use a file with manifests, or split it", name, limit>>20)
	}
	return lint.Input{File: name, Data: data}, err
}

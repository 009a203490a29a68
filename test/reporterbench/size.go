package main

import (
	"debug/elf"
	"os"
	"strings"
)

// strippedSize is the size of a binary without symbols and debugging information, with which
// nobody ships it.
func strippedSize(path string) (size int64, wasStripped bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false, err
	}
	binary, err := elf.Open(path)
	if err != nil {
		return info.Size(), true, nil //nolint:nilerr // of another system: as it is
	}
	defer binary.Close() //nolint:errcheck // only read
	size = info.Size()
	for _, section := range binary.Sections {
		if section.Name == ".symtab" || section.Name == ".strtab" || strings.HasPrefix(section.Name, ".debug_") || strings.HasPrefix(section.Name, ".zdebug_") {
			size -= int64(section.FileSize)
		}
	}
	return size, size == info.Size(), nil
}

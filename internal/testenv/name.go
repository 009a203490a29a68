package testenv

import (
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
)

// NameOf returns a name that no other test uses, valid for objects, labels and taints.
func NameOf(t testing.TB) string {
	name := strings.ToLower(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, t.Name()))
	if len(name) > 40 {
		name = fmt.Sprintf("%s-%08x", name[:30], crc32.ChecksumIEEE([]byte(name)))
	}
	return strings.Trim(name, "-")
}

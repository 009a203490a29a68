package probe_test

import (
	"testing"

	"github.com/readygate/readygate/internal/core/podrule"
)

// A value that is only a part of another value does not match.
func TestAFileContainsWholeValues(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		value         string
		isNotIn, isIn []string
	}{
		"an address and its prefix": {
			value: "10.0.0.1/32",
			isIn:  []string{"10.0.0.1/32", `["10.0.0.1/32"]`, "10.0.0.1/32\n", "ip=10.0.0.1/32;", "x 10.0.0.1/32,10.0.0.2/32", "110.0.0.1/32 10.0.0.1/32", "10.0.0.1/320 10.0.0.1/32"},
			isNotIn: []string{"110.0.0.1/32", "10.0.0.1/320", "10.0.0.1/32.5", "0.10.0.0.1/32", "::ffff:10.0.0.1/32", "10.0.0.1/32:80", "a10.0.0.1/32", "10.0.0.1/32a",
				"-10.0.0.1/32", "10.0.0.1/32-", "_10.0.0.1/32", "10.0.0.1/32_", "10.0.0.11/32", "10.0.0.1 /32", "", "ä10.0.0.1/32", "10.0.0.1/32ä", "10.0.0.1/32\xff"},
		},
		"an address": {
			value:   "10.0.0.1",
			isIn:    []string{"10.0.0.1/32", "10.0.0.1"},
			isNotIn: []string{"10.0.0.12", "10.0.0.1.5", "10.0.0.1:80"},
		},
		"an address with colons": {
			value:   "fd00::1",
			isIn:    []string{"fd00::1/128", `"fd00::1"`},
			isNotIn: []string{"fd00::1:2", "fd00::12", "1fd00::1", "0:fd00::1"},
		},
		"a value with its own ends": {
			value:   `"10.0.0.1"`,
			isIn:    []string{`{"ip":"10.0.0.1"}`, `x"10.0.0.1"y`},
			isNotIn: []string{`{"ip":"10.0.0.1/32"}`},
		},
		"what is left of a template": {
			value:   "/128",
			isIn:    []string{" /128"},
			isNotIn: []string{"fd00::1/128", "10.0.0.1/128"},
		},
		"one that overlaps itself": {
			value:   "a-a",
			isIn:    []string{"a-a-a a-a"},
			isNotIn: []string{"a-a-a", "a-aa-a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := newHost(t)
			ask := func(content string) podrule.Answer {
				host.write("/file", content)
				return host.ask(t, "/file", test.value)
			}
			for _, content := range test.isIn {
				if !ask(content).Yes {
					t.Errorf("%q does not contain %q", content, test.value)
				}
			}
			for _, content := range test.isNotIn {
				if ask(content).Yes {
					t.Errorf("%q contains %q", content, test.value)
				}
			}
		})
	}
}

package latchkey_test

import (
	"testing"
	"time"

	"github.com/readygate/readygate/api/pod/v1alpha1"
	"github.com/readygate/readygate/internal/core/latchkey"
)

func TestTheAnnotationHasOneName(t *testing.T) {
	if latchkey.Annotation != v1alpha1.LatchAnnotation {
		t.Errorf("the latch reads %s, rules write %s", latchkey.Annotation, v1alpha1.LatchAnnotation)
	}
}

var sandbox = latchkey.Sandbox{IP: "10.0.0.7", Boot: "b1", Since: time.Date(2026, 11, 16, 10, 0, 0, 0, time.UTC)}

// What is written is read again.
func TestAKeyIsReadAsItWasWritten(t *testing.T) {
	for value, key := range map[string]latchkey.Key{
		"open 10.0.0.7 b1 2026-11-16T10:00:00Z":         {Open: true, Sandbox: sandbox},
		"closed 10.0.0.7 b1 2026-11-16T10:00:00Z again": {Sandbox: sandbox, Again: true},
		"closed - b1 - again":                           {Sandbox: latchkey.Sandbox{Boot: "b1"}, Again: true},
		"open fd00::1 - -":                              {Open: true, Sandbox: latchkey.Sandbox{IP: "fd00::1"}},
		"always RuleDeleted":                            latchkey.Always("RuleDeleted"),
		"open 10.0.0.7 b1 2026-11-16T10:00:00Z  ":       {Open: true, Sandbox: sandbox, Touches: 2},
		"always RuleDeleted ":                           {Open: true, Always: "RuleDeleted", Touches: 1},
	} {
		if got := key.String(); got != value {
			t.Errorf("%+v is written as %q, want %q", key, got, value)
		}
		if got, ok := latchkey.Parse(value); !ok || got != key {
			t.Errorf("%q is read as %+v, %v, want %+v", value, got, ok, key)
		}
	}
}

// What cannot be read opens nothing.
func TestInvalidKeyOpensNothing(t *testing.T) {
	for _, value := range []string{"", "open", "open 10.0.0.7", "opened 10.0.0.7 b1 -", "open 10.0.0.7 b1 yesterday", "open 10.0.0.7 b1 - more",
		"open 10.0.0.7 b1 - again again", "always", "always a b"} {
		if key, ok := latchkey.Parse(value); ok || key.Opens("10.0.0.7", "b1") {
			t.Errorf("%q is read as %+v", value, key)
		}
	}
}

// A key opens the latch of the sandbox that it names, and of no other.
func TestOpens(t *testing.T) {
	open := latchkey.Key{Open: true, Sandbox: sandbox}
	unknown := open
	unknown.Sandbox.Boot = ""
	tests := []struct {
		key      latchkey.Key
		ip, boot string
		want     bool
	}{
		{open, "10.0.0.7", "b1", true},
		{open, "10.0.0.8", "b1", false},
		{open, "10.0.0.7", "b2", false},
		{open, "10.0.0.7", "", true},
		{open, "", "b1", false},
		{unknown, "10.0.0.7", "b2", true},
		{latchkey.Key{Sandbox: sandbox}, "10.0.0.7", "b1", false},
		{latchkey.Key{Open: true}, "", "", false},
		{latchkey.Always("AgentGone"), "10.0.0.8", "b2", true},
	}
	for _, tc := range tests {
		if got := tc.key.Opens(tc.ip, tc.boot); got != tc.want {
			t.Errorf("%q opens %q in boot %q: %v", tc.key, tc.ip, tc.boot, got)
		}
	}
}

// A sandbox is not older than what happened within the second that it names.
func TestPrecedes(t *testing.T) {
	since := sandbox.Since
	for name, tc := range map[string]struct {
		since, made time.Time
		want        bool
	}{
		"made long after":        {since, since.Add(time.Hour), true},
		"made after that second": {since, since.Add(time.Second + 1), true},
		"made as it ends":        {since, since.Add(time.Second), false},
		"made within it":         {since, since.Add(time.Second - 1), false},
		"made before it":         {since, since.Add(-time.Minute), false},
		"one without a time":     {time.Time{}, since, false},
		"made at no known time":  {since, time.Time{}, false},
	} {
		if got := (latchkey.Sandbox{IP: "10.0.0.7", Since: tc.since}).Precedes(tc.made); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A blank in a word, which no address or boot has, cannot make another key of it.
func TestBlankInAnAddressOrBootIDMakesNoOtherKey(t *testing.T) {
	key := latchkey.Key{Sandbox: latchkey.Sandbox{IP: "open 10.0.0.7", Boot: "x y"}}
	if got, ok := latchkey.Parse(key.String()); !ok || got.Open || got.Sandbox.IP != "" || got.Sandbox.Boot != "" {
		t.Errorf("%q is read as %+v, %v", key, got, ok)
	}
}

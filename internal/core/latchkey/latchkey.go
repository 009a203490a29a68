// Package latchkey encodes and decodes the value of the annotation that opens a latch. The key contains the sandbox of the
// pod, and the latch compares it with its own sandbox, so that an outdated key opens nothing.
//
// There are two forms, words separated by a blank:
//
//	open 10.244.1.7 0b5e…-boot-id 2026-11-16T10:00:00Z
//	always RuleDeleted
//
// The first form begins with open or closed, and has the address of the pod, the boot ID of its node and the time
// since which the sandbox exists; a fifth word, again, means that the pod had another sandbox before. The second
// form opens the latch of every sandbox, with the reason.
//
// The number of blanks at the end is how often the key was touched, that is, written again so that the kubelet delivers it
// again. They do not change what a key opens. A latch of a version without touches waits its 10 s again after each touch
// if the key looks older than the sandbox.
package latchkey

import (
	"strings"
	"time"
)

// Sandbox is one sandbox of a pod.
type Sandbox struct {
	// IP is the pod's address in it; empty if it has none.
	IP string
	// Boot is the boot ID of the node; empty if it is not known.
	Boot string
	// Since is when it became ready to start containers; zero if it is not ready.
	Since time.Time
}

// Ready reports whether containers can start in the sandbox, and it has an address.
func (s Sandbox) Ready() bool { return s.IP != "" && !s.Since.IsZero() }

// Same reports whether two sandboxes are the same one. Boots are compared only if both are known.
func (s Sandbox) Same(other Sandbox) bool {
	return s.IP == other.IP && !s.Rebooted(other) && s.Since.Equal(other.Since)
}

// Rebooted reports whether the other sandbox is of another boot. It is false if either boot is not known.
func (s Sandbox) Rebooted(other Sandbox) bool {
	return s.Boot != "" && other.Boot != "" && s.Boot != other.Boot
}

// Precedes reports whether the sandbox was ready before another one was created. It is false if either time is not known.
// Since has whole seconds, so a sandbox that was created within the next second may be the same.
func (s Sandbox) Precedes(made time.Time) bool {
	return !s.Since.IsZero() && !made.IsZero() && s.Since.Add(time.Second).Before(made)
}

// Key is the decoded value of an annotation.
type Key struct {
	// Open means that the latch is open.
	Open bool
	// Sandbox is the sandbox of the key; empty if the key is for every sandbox.
	Sandbox Sandbox
	// Again means that the pod had another sandbox before.
	Again bool
	// Always is why the latch is open for every sandbox; empty if the key is for one sandbox.
	Always string
	// Touches is how often the key was written again; MaxTouches+1 if another account added blanks.
	Touches int
}

// MaxTouches is the maximum number of touches of a key.
const MaxTouches = 5

// The words of a key.
const (
	wordOpen   = "open"
	wordClosed = "closed"
	wordAlways = "always"
	wordAgain  = "again"
	wordNone   = "-"
)

// Always returns the key that opens the latch of every sandbox, with a reason of one word.
func Always(reason string) Key { return Key{Open: true, Always: reason} }

// String is the value of the annotation.
func (k Key) String() string { return k.words() + strings.Repeat(" ", k.Touches) }

func (k Key) words() string {
	if k.Always != "" {
		return wordAlways + " " + k.Always
	}
	words := []string{wordClosed, orNone(k.Sandbox.IP), orNone(k.Sandbox.Boot), wordNone}
	if k.Open {
		words[0] = wordOpen
	}
	if !k.Sandbox.Since.IsZero() {
		words[3] = k.Sandbox.Since.UTC().Format(time.RFC3339)
	}
	if k.Again {
		words = append(words, wordAgain)
	}
	return strings.Join(words, " ")
}

// Parse decodes the value of an annotation. It returns false for a value that is not a key.
func Parse(value string) (key Key, ok bool) {
	words := strings.Fields(value)
	touches := min(len(value)-len(strings.TrimRight(value, " ")), MaxTouches+1)
	if len(words) == 2 && words[0] == wordAlways {
		return Key{Open: true, Always: words[1], Touches: touches}, true
	}
	if len(words) < 4 || len(words) > 5 || words[0] != wordOpen && words[0] != wordClosed {
		return Key{}, false
	}
	key = Key{Open: words[0] == wordOpen, Touches: touches, Sandbox: Sandbox{IP: unlessNone(words[1]), Boot: unlessNone(words[2])}}
	if words[3] != wordNone {
		since, err := time.Parse(time.RFC3339, words[3])
		if err != nil {
			return Key{}, false
		}
		key.Sandbox.Since = since
	}
	if len(words) == 5 {
		if words[4] != wordAgain {
			return Key{}, false
		}
		key.Again = true
	}
	return key, true
}

// Opens reports whether the key opens the latch of the sandbox with this address, in this boot. Boots are compared only if
// both are known. If a pod keeps its address, the key may be for an earlier sandbox: see Precedes.
func (k Key) Opens(ip, boot string) bool {
	switch {
	case !k.Open:
		return false
	case k.Always != "":
		return true
	}
	return k.Sandbox.IP != "" && k.Sandbox.IP == ip && (k.Sandbox.Boot == "" || boot == "" || k.Sandbox.Boot == boot)
}

func orNone(word string) string {
	if word == "" || strings.ContainsAny(word, " \t\r\n") {
		return wordNone
	}
	return word
}

func unlessNone(word string) string {
	if word == wordNone {
		return ""
	}
	return word
}

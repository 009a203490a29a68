// Package scenario parses scenarios: steps in a cluster and the expected states.
// A scenario is data; the demo and tests play it.
//
// It is pure: it must never use a cluster or a clock. Parse returns every error of a
// file; the error names the field and a valid value.
package scenario

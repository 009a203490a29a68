// Package scenario reads scenarios: what happens in a cluster, step by step, and what is expected.
// A scenario is data; the demo and tests play it.
//
// It is pure: it knows neither a cluster nor a clock. Everything that is wrong with a file is
// found when it is read; the error names the field and a valid value.
package scenario

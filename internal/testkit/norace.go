//go:build !race

package testkit

// raceFlag builds what tests start as they were built themselves.
var raceFlag []string

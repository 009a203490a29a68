//go:build race

package testenv

// raceFlag builds what tests start as they were built themselves.
var raceFlag = []string{"-race"}

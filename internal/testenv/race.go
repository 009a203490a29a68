//go:build race

package testenv

// raceFlag builds the programs that tests start with the race detector, like the tests.
var raceFlag = []string{"-race"}

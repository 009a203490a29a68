//go:build !race

package testenv

// raceFlag builds the programs that tests start without the race detector, like the tests.
var raceFlag []string

package plugin

import (
	"errors"
	"fmt"
)

// Exit codes. They are part of what users rely on.
const (
	// ExitFine says that the command did what it was asked.
	ExitFine = 0
	// ExitError says that something went wrong.
	ExitError = 1
	// ExitUsage says that the command line is wrong.
	ExitUsage = 2
	// ExitFindings says that lint found errors, or warnings with --strict.
	ExitFindings = 3
)

// usageError is a mistake in the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errFindings ends a command whose output has said all there is to say.
var errFindings = errors.New("lint found errors")

// exitCode is the code for what became of a command. A command that did not even start was
// called wrongly.
func exitCode(err error, started bool) int {
	var usage usageError
	switch {
	case err == nil:
		return ExitFine
	case errors.Is(err, errFindings):
		return ExitFindings
	case errors.As(err, &usage), !started:
		return ExitUsage
	}
	return ExitError
}

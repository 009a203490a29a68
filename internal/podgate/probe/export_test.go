package probe

import "github.com/readygate/readygate/internal/core/podrule"

// SetCheckFile replaces the function of an asker that checks files.
func SetCheckFile(a *Asker, at func(root string, p podrule.Probe) podrule.Answer) { a.files.at = at }

// MaxPending is the maximum number of unfinished checks of files.
const MaxPending = maxPending

// ExplainFile returns the reason why a file cannot be read.
var ExplainFile = explainFile

// OpenWithin opens a file without openat2.
var OpenWithin = openWithin

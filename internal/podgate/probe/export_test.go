package probe

import "github.com/readygate/readygate/internal/core/podrule"

// SetLook gives an asker another way to look at files.
func SetLook(a *Asker, at func(root string, p podrule.Probe) podrule.Answer) { a.looks.at = at }

// MaxLooks is how many looks at files may not have ended.
const MaxLooks = maxLooks

// FileWords say why a file cannot be looked at.
var FileWords = fileWords

// OpenWithin opens a file where there is no better way.
var OpenWithin = openWithin

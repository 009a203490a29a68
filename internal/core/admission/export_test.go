package admission

// Quote is exported to try it with every text.
var Quote = quote

// Bounds of the text, exported to try what just fits.
const (
	MaxRuleText = maxRuleText
	MaxText     = maxText
)

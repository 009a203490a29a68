package cli

// Picture is what watch draws.
var Picture = picture

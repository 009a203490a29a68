package readiness

// Overlap is exported to compare it with an exhaustive search.
var Overlap = overlap

// Package scenario reads stories about a cluster: what happens, step by step, and what must be
// so. A story is data; it is played by the demo, and by tests.
//
// It is pure: it knows neither a cluster nor a clock. Everything that is wrong with a file is
// found when it is read, and named with what would be right.
package scenario

// Package view is the read model: rules and nodes in the form in which people see them, in
// the terminal and on the page. What a rule says of a node comes from package readiness, so
// no view of it can disagree with what the manager does.
//
// It is pure: times are those of the objects, and whoever shows an age brings the clock.
// Texts of others (names, messages, reasons) are passed on as they are: whoever shows them
// must make them harmless.
package view

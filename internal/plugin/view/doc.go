// Package view is the read model: rules, nodes and pods as users see them, in the terminal and on the page.
// Verdicts come from the core, so no view can disagree with the manager.
//
// It is pure: times are those of the objects, and the caller that shows an age has the clock. Untrusted text
// (names, messages, reasons) is passed on unchanged: the caller that shows it must escape it.
package view

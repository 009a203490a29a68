// Package view is the read model: rules, nodes and pods as the terminal and the dashboard show them. Verdicts come
// from the core, so no view can disagree with the manager.
//
// It is pure: times are those of the objects, and callers pass the current time. It returns untrusted text (names,
// messages, reasons) unchanged. Callers that show such text must escape it.
package view

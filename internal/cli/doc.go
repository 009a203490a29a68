// Package cli is kubectl readiness: one file a verb. It gathers with package live or from
// files, asks package view, and lets package text write it. It only ever reads.
package cli

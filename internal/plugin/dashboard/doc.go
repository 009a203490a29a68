// Package dashboard serves one page that shows which nodes and pods are held, by which rule and why, and follows
// changes. It only reads, listens on loopback, and loads nothing from other hosts: all files are embedded.
//
// Names and messages are untrusted text. They are sent as JSON only, and the page inserts them as text only; the
// content security policy is the second protection, not the first.
package dashboard

// Package dashboard serves one page that shows which nodes and pods are held, by which rule and why, and follows
// changes. It must only read, listen only on loopback, and load nothing from other hosts: all files are embedded.
//
// Names and messages are untrusted text. The server sends them only as JSON, and the page inserts them only as text. The
// content security policy is the second protection, not the first.
package dashboard

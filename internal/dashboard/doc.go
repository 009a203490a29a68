// Package dashboard serves one page that shows a fleet: what is held, by which rule and why,
// live. It only reads, listens on loopback, and needs nothing from elsewhere: all files
// are embedded.
//
// Names and messages are texts of strangers. They leave here as JSON only, and the page shows
// them as text only; the content security policy is the second wall, not the first.
package dashboard

// Package turnstile keeps a client of the API server polite, whoever sends requests through
// it and however many: few are under way at one time, the most needed go first, and when the
// server asks for less there is less.
//
// A request needs a place from before it is sent until its answer has been read. Watches pass
// freely: they last, and the server has its own way to count them. A request that the server
// refuses for now leaves its place; whoever retries it, as client-go does, waits for a place
// again, so retries never add to what is under way.
//
// It decides nothing about what is sent, and retries nothing itself.
package turnstile

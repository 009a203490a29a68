// Package turnstile limits and orders the requests of the manager to the API server.
//
// A request has a place from before it is sent until its response has been read. Watches need no place. A request
// that the API server rejects for now (429, Retry-After) leaves its place; client-go retries it through the
// turnstile, so that retries do not add to the requests in flight.
//
// It does not change requests, and retries nothing itself.
package turnstile

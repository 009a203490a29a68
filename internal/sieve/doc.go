// Package sieve reads nodes without what nobody here looks at.
//
// A node is some 15 KB on the wire, most of it images, managed fields and annotations of others, and it comes anew with
// every heartbeat. To decode all that, only to throw most of it away before it enters the cache,
// is most of what a quiet cluster costs. So it is cut out of the bytes, and the rest is decoded.
package sieve

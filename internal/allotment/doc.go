// Package allotment keeps rules with maxUnavailable from taking more nodes away than they may.
//
// The count must be right at every moment, and the cache is always a little behind. So what may
// be taken away is granted before the write, and counts from then on: until a state of the node
// that is as new as the write shows what became of it, or the write has failed for sure. One
// that ended without an answer counts until it cannot happen any more. And before the first grant
// all nodes are read past the cache: who led before may have written a moment ago, and if it left
// without a word, its last writes may not even have happened yet.
package allotment

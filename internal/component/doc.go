// Package component asks the components on this node whether they have programmed the network of a
// pod: it turns a question of package gating into an answer. It decides nothing and has no client of
// the API server.
//
// Why an answer is no is said in few words that stay the same while nothing changes, with no bodies,
// times, ports of this side or names of peers: every change of a word is a write to the API server.
package component

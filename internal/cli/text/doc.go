// Package text writes what the read model says as lines for people in terminals. Whatever
// comes from a cluster or a file is made harmless here, in one place: it can neither steer the
// terminal nor make lines of its own.
package text

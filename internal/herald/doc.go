// Package herald writes events to the API server, one after another and no faster than its
// client, in a memory that is bounded however much there is to tell of.
//
// It takes the place of client-go's broadcaster, which starts a goroutine for each event and
// remembers each for minutes: where all nodes change at once, that was most of a manager's
// memory. As there, what repeats itself becomes a series, and events may be lost: they tell of
// what was done, and nothing depends on them.
package herald

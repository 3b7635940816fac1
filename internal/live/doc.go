// Package live lets readers follow a session: what is stored, then what is new,
// without a gap and without a duplicate, from any position.
//
// The log is the truth and the only queue. A reader is a position in it; being
// told that the log grew only wakes the reader up. So a slow reader costs what
// a fast one costs, and a lost wake-up costs time and never an event.
//
//	Hub       knows which sessions are followed; told of appends and deltas
//	feed      one followed session in one format: reads and encodes what is new once for all
//	follower  one reader: position, and how much of the open answer it has
//	fragment  the answer that a model is writing right now; never stored
//
// ServeSSE and ServeWS put a follower on the wire. What an event looks like there
// is decided by the Encoder that the caller gives; this package does not look into
// it. A stream may be detached from its handler, which saves most of its memory.
//
// Lists and ServeList do the same for the list of a user's sessions, of which only
// the newest state matters.
package live

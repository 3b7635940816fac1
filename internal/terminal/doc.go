// Package terminal shows a conversation in a terminal, or as plain lines in a pipe. Its input is
// the events of the log and the fragments of unfinished answers; it only writes, and makes no
// requests and no decisions.
//
// What a model, a program or a web page says is never trusted with the
// terminal: everything that could move the cursor, rename the window or hide a
// part of a line is made visible instead.
package terminal

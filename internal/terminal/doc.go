// Package terminal shows a conversation to a person at a terminal, or as plain
// lines to whoever reads a pipe. It is given the events of the log and the
// fragments of what is being written, and writes; it asks nothing and decides
// nothing.
//
// What a model, a program or a web page says is never trusted with the
// terminal: everything that could move the cursor, rename the window or hide a
// part of a line is made visible instead.
package terminal

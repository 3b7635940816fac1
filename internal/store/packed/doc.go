// Package packed is the form in which the database stores the events of a batch and what
// lists know of a session: each as one blob, and old events compressed. Recent has
// the newest of them in memory.
package packed

// Bench measures Deckhand against floors: the cheapest thing on the same
// machine, in the same run, that does the same job. Absolute figures say how
// fast a machine is; ratios say how fast the program is. README.md tells what
// each line means and how to read it.
package main

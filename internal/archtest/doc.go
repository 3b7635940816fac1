// Package archtest holds the tests that keep the house in order: which package
// may import which, how large files and functions grow, what tests may not do,
// and what must never be committed.
//
// It has no code outside its tests. Each rule is a row of data with the reason
// beside it, so that a failure explains itself, and each rule is first tried on
// a small made-up tree that breaks it, so that a rule cannot quietly stop
// working. The tree is parsed from its files, without running the go command:
// the test cache then sees every file that was read, and a package that does
// not compile today can still be judged.
package archtest

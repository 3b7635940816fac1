// Package archtest tests the rules of the repository: which package may import which, the
// maximum size of files and functions, what tests must not do, and what must not be
// committed.
//
// It has no code outside its tests. Each rule is a row of data with its reason, which is
// part of the failure message. Each rule is also run on a small made-up tree that breaks it,
// so that a rule cannot silently stop working. The tree is parsed from its files, without
// running the go command: the test cache then knows every file that was read, and packages
// that do not compile are checked too.
package archtest

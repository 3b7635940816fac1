// Package solvable says how likely an agent solves an issue. It asks the user's
// own model, remembers the answer as long as the issue stays the same, and lets
// nobody wait for long: what is not known yet is known the next time.
//
// It knows neither models nor settings. What an issue says is a stranger's
// text, and so is what the model makes of it: both are bounded and only shown.
package solvable

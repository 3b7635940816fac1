// Package solvable rates how likely an agent solves an issue. It asks the user's own model,
// caches the answer until the issue changes, and bounds the wait: a rating that is not ready is
// returned the next time.
//
// It knows neither models nor settings. What an issue says is a stranger's
// text, and so is what the model makes of it: both are bounded and only shown.
package solvable

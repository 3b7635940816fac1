// Package check decides whether a history, as observed from outside, violates a guarantee
// of the product. A history is plain data, so tests can forge one that breaks a rule.
package check

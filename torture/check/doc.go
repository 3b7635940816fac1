// Package check decides whether a history that was seen from outside breaks a promise of
// the product. It knows nothing of processes and connections: a history is data, so tests
// can forge one that breaks a rule.
package check

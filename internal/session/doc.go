// Package session is the core: what can happen in a conversation, and what may.
//
// A session is a log of events. An event is a fact, whole and in the past tense, with a number that grows by one. State is a pure fold of them; rules
// are pure methods on State that return the facts to append or a refusal; and every change goes through Sessions.Update, which appends at an expected
// number and applies the rule again when another writer was faster.
//
// The package imports the standard library only. Stores implement Log and Index; the API, the agent loop and the live readers meet nowhere but here.
package session

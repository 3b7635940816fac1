// Package profile turns the settings of a user, and what a person chose for one
// conversation, into what its agent may use: the model, the tools and tool
// servers, the limits, the prompts and knowledge, and the environment of its
// sandbox.
package profile

// Package checkout brings a session's repository into its workspace: it is
// cloned, on the right branch, with its submodules and large files, set up by
// its own script, and given the hooks that its commits need.
//
// Everything runs inside the sandbox, since a repository may be anybody's: git
// with nothing switched on that a repository could make it do, and the
// repository's own scripts where they can hurt nobody. No token is ever brought
// in; the way out of the sandbox adds it.
//
// Each step can be interrupted at any moment and done again. A clone is made
// beside its place and moved there when it is complete; what was done stands in
// the session's log.
package checkout

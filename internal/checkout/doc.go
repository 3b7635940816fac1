// Package checkout clones a session's repository into its workspace, on the right branch,
// with submodules and large files, runs its setup script and installs its git hooks.
//
// Everything runs inside the sandbox, because the repository is untrusted: git runs with
// every feature disabled that a repository could abuse, and the repository's scripts run
// where they can do no harm. Tokens never enter the sandbox; the egress proxy adds them.
//
// Every step can be interrupted and repeated. A clone is made in a temporary folder and
// moved to its place when it is complete. The session log records what was done.
package checkout

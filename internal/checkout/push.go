package checkout

import (
	"context"
	"maps"
	"path"
	"strings"

	"deckhand/internal/sandbox"
)

// PushError is a push that git did not make, in its words.
type PushError struct{ Said string }

func (e *PushError) Error() string { return "git push: " + e.Said }

// Push sends the present commit of a repository in the workspace to a branch at url, through the git gate. As the
// workspace is not trusted, git reads no configuration outside of the repository and runs no hooks, so files of Git LFS
// are not sent.
func Push(ctx context.Context, box *sandbox.Sandbox, folder, url, branch string) error {
	if err := CheckURL(url); err != nil {
		return &PushError{err.Error()}
	}
	env := maps.Clone(environment)
	env["GIT_CONFIG_NOSYSTEM"], env["GIT_CONFIG_GLOBAL"] = "1", "/dev/null"
	run := func(offline bool, args ...string) (sandbox.ProcessResult, error) {
		all := append([]string{}, flags...)
		all = append(all, "-c", "push.gpgSign=false", "-c", "push.recurseSubmodules=no")
		return box.Run(ctx, sandbox.Process{Args: append(all, args...), Dir: path.Clean(folder), Env: env, Own: true, Offline: offline, Limit: maxSaid}, nil)
	}
	r, err := run(false, "push", "--no-verify", "--", url, "HEAD:refs/heads/"+branch)
	if err != nil {
		return err
	}
	if r.Exit != 0 {
		return &PushError{strings.TrimSpace(strings.ToValidUTF8(string(r.Stderr), "?"))}
	}
	// The branch at origin is what the next changes are compared with.
	_, err = run(true, "update-ref", "refs/remotes/origin/"+branch, "HEAD")
	return err
}

// Package clone prepares the folder of a repository that deckhand run clones.
package clone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"deckhand/internal/checkout"
	"deckhand/internal/cli"
	"deckhand/internal/conversation"
	"deckhand/internal/gitprovider"
)

// secureShell are addresses that only the user's own keys open.
var secureShell = regexp.MustCompile(`^(ssh://[A-Za-z0-9._~-]+@?|[A-Za-z0-9._~-]+@[A-Za-z0-9.-]+:)[^-]`)

// Repository is what the agent works on at a terminal.
type Repository struct {
	Repo, Branch string
	Trust        bool
}

// Check refuses flags that exclude each other. continued means that an earlier session is continued.
func (c Repository) Check(continued bool) error {
	switch {
	case c.Branch != "" && c.Repo == "":
		return cli.Usagef("--branch needs --repo")
	case continued && c.Repo != "":
		return cli.Usagef("--continue cannot be used with --repo, which makes a new folder; use --dir with the folder of the session")
	}
	return nil
}

// Prepare finds the new folder to work in, below dir. What is on the web is
// cloned into it in the sandbox, as everywhere; local says so. What only the
// user's own git can reach, a folder of this machine or a host that wants their
// key, is cloned by that, since neither gets into the sandbox. made removes the
// folder if nothing came to be in it.
func (c Repository) Prepare(ctx context.Context, dir string, o *cli.Output, local *conversation.Local) (to string, made func(), err error) {
	made = func() {}
	if c.Branch != "" && !gitprovider.ValidBranch(c.Branch) {
		return "", made, cli.Usagef("--branch %q is not a valid branch name", c.Branch)
	}
	to = filepath.Join(dir, checkout.Folder(strings.TrimRight(c.Repo, "/")))
	if strings.Contains(c.Repo, "::") || strings.HasPrefix(c.Repo, "-") {
		return "", made, cli.Usagef("--repo %s is not a repository", c.Repo)
	}
	_, missing := os.Stat(c.Repo)
	isPath := filepath.IsAbs(c.Repo) || strings.HasPrefix(c.Repo, "./") || strings.HasPrefix(c.Repo, "../") || strings.HasPrefix(c.Repo, "~")
	switch {
	case missing == nil:
		return to, made, c.cloneOutside(ctx, o, to, "file")
	case isPath && errors.Is(missing, fs.ErrNotExist):
		return "", made, cli.Usagef("--repo: the folder %s does not exist", c.Repo)
	case secureShell.MatchString(c.Repo):
		return to, made, c.cloneOutside(ctx, o, to, "ssh")
	case gitprovider.ValidRepository(c.Repo):
		local.Repository, local.Provider = c.Repo, gitprovider.Default()
	default:
		address, err := url.Parse(strings.TrimRight(c.Repo, "/"))
		if err != nil || checkout.CheckURL(address.String()) != nil || strings.Trim(address.Path, "/") == "" {
			return "", made, cli.Usagef("--repo %s must be an https:// URL, OWNER/NAME, or a folder", c.shown())
		}
		local.Repository, local.Address = strings.TrimSuffix(strings.Trim(address.Path, "/"), ".git"), address.String()
	}
	local.Branch, local.Trusted = c.Branch, c.Trust
	if err := os.Mkdir(to, 0o755); err != nil {
		return "", made, fmt.Errorf("cannot clone the repository: %w", err)
	}
	return to, func() { _ = os.Remove(to) }, nil // it stays unless it is empty
}

// shown returns the repository for a message, without the user and password of a URL.
func (c Repository) shown() string { return c.Repo[strings.LastIndex(c.Repo, "@")+1:] }

// cloneOutside clones with the user's own git. It runs nothing of the
// repository's, and shares no file with it.
func (c Repository) cloneOutside(ctx context.Context, o *cli.Output, to, transport string) error {
	args := []string{"-c", "protocol.allow=never", "-c", "protocol." + transport + ".allow=always", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
		"clone", "--quiet", "--no-local", "--template="}
	if c.Branch != "" {
		args = append(args, "--branch="+c.Branch)
	}
	git := exec.CommandContext(ctx, "git", append(args, "--", c.Repo, to)...)
	git.Env = append(os.Environ(), "GIT_ALLOW_PROTOCOL="+transport, "GIT_LFS_SKIP_SMUDGE=1")
	git.Stdin, git.Stdout, git.Stderr = os.Stdin, o.Stderr, o.Stderr
	if err := git.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return errors.New("git is not installed on this machine")
		}
		return fmt.Errorf("cannot clone the repository into %s: %w", to, err)
	}
	fmt.Fprintf(o.Stderr, "cloned into %s\n", to)
	return nil
}

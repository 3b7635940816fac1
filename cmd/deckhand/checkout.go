package main

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"deckhand/api"
	"deckhand/internal/checkout"
	"deckhand/internal/gitprovider"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/host"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// checkout brings sessions' repositories into their workspaces. In a folder of
// the user's the repository is the folder itself.
func (c *serveCmd) checkout(h hands, sessions *session.Sessions, all *settings.Service) *checkout.Checkout {
	return checkout.New(checkout.Config{Sessions: sessions, Mask: all.Masker, Confinable: h.name != host.Name,
		AskTime: c.ApprovalTimeout, AcceptLate: c.ApprovalDefault == "accept", Source: func(ctx context.Context, st session.State) (checkout.Source, error) {
			s, err := all.Get(ctx, st.Owner)
			if err != nil && !errors.Is(err, settings.ErrNotFound) {
				return checkout.Source{}, err
			}
			src := checkout.Source{URL: st.Created.Address, Folder: checkout.Folder(st.Created.Repository), Coauthored: coauthor(st.Owner, s) != "",
				Confirm: s.ConfirmationMode != nil && *s.ConfirmationMode}
			if c.Folder != "" {
				src.Folder = "."
			}
			src.Template = src.Coauthored && c.Folder == "" // the home of a person is left alone
			if src.URL == "" && st.Created.Repository != "" {
				src.URL, err = gitprovider.CloneURL(st.Created.Provider, s.ProviderTokens[st.Created.Provider].Host, st.Created.Repository)
				if err != nil {
					return src, &sandbox.Unavailable{ID: api.CodeGitClone, Reason: "The repository " + st.Created.Repository + " cannot be cloned: " + err.Error() + "."}
				}
			}
			return src, nil
		}})
}

// templated has git init copy the co-author hook into new repositories.
func templated(env map[string]string) {
	n, err := strconv.Atoi(env["GIT_CONFIG_COUNT"])
	if err != nil || n < 0 {
		n = 0
	}
	at := strconv.Itoa(n)
	env["GIT_CONFIG_KEY_"+at], env["GIT_CONFIG_VALUE_"+at] = "init.templateDir", checkout.Template
	env["GIT_CONFIG_COUNT"] = strconv.Itoa(n + 1)
}

// The author of commits whose user has not said who it is.
const (
	nobodysName  = "deckhand"
	nobodysEmail = "deckhand@localhost"
)

// identify says in the environment who the agent's commits are by, so that it
// holds in every repository of this sandbox and in no other.
func identify(env map[string]string, owner string, s settings.Settings) {
	name, email := nobodysName, nobodysEmail
	if s.GitUserName != nil && *s.GitUserName != "" {
		name = *s.GitUserName
	}
	if s.GitUserEmail != nil && *s.GitUserEmail != "" {
		email = *s.GitUserEmail
	}
	env["GIT_AUTHOR_NAME"], env["GIT_COMMITTER_NAME"] = name, name
	env["GIT_AUTHOR_EMAIL"], env["GIT_COMMITTER_EMAIL"] = email, email
	if line := coauthor(owner, s); line != "" {
		env[checkout.Coauthor] = line
	}
}

// coauthor is how commits name the user beside their author, "" if they need
// not: there is no address, or it is the author's own.
func coauthor(owner string, s settings.Settings) string {
	if s.Email == nil || strings.TrimSpace(*s.Email) == "" || s.GitUserEmail != nil && *s.GitUserEmail == *s.Email {
		return ""
	}
	return plainLine(owner) + " <" + plainLine(*s.Email) + ">"
}

// plainLine takes out what would end a line, or an address, of a commit.
func plainLine(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune("<>\x7f", r) {
			return -1
		}
		return r
	}, s))
}

// top is the session in whose workspace a session works.
func (b *brain) top(ctx context.Context, st session.State) (session.State, error) {
	for st.Created.Parent != "" {
		up, err := b.sessions.Load(ctx, st.Created.Parent)
		if err != nil {
			return st, err
		}
		st = up
	}
	return st, nil
}

// repositoryFiles is the repository's part of a workspace.
func repositoryFiles(files fs.FS, done *session.CheckedOut) fs.FS {
	if done == nil || done.Folder == "." {
		return files
	}
	part, err := fs.Sub(files, done.Folder)
	if err != nil {
		return files
	}
	return part
}

// troubles are what the agent should know of a checkout that is not as it should be.
func troubles(st session.State) string {
	if st.Checkout == nil {
		return ""
	}
	lines := append([]string(nil), st.Checkout.Notes...)
	if u := st.SetUp; u != nil && u.Problem != "" {
		lines = append(lines, u.Problem)
	} else if u != nil && u.Exit != 0 {
		lines = append(lines, "The repository's setup script "+u.Script+" failed. Its output ends with:\n"+tail(u.Output))
	}
	if h := st.Hook; h != nil && h.Problem != "" {
		lines = append(lines, h.Problem)
	}
	return strings.Join(lines, "\n")
}

// maxTail is how much of a script's output the model is shown.
const maxTail = 2000

func tail(s string) string {
	if len(s) <= maxTail {
		return s
	}
	return "…" + strings.ToValidUTF8(s[len(s)-maxTail:], "")
}

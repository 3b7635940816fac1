package gitaccess

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/checkout"
	"deckhand/internal/gitprovider"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// CheckoutConfig says what a checkout works with.
type CheckoutConfig struct {
	Sessions *session.Sessions
	Settings *settings.Service
	// Folder is the workspace of every conversation, "" for one of its own each.
	Folder string
	// Confinable says that sandboxes have a network that can be taken away.
	Confinable bool
	// AskTime is how long a set-up script waits for approval, AcceptLate what happens then.
	AskTime    time.Duration
	AcceptLate bool
}

// NewCheckout brings sessions' repositories into their workspaces. In a folder of
// the user's the repository is the folder itself.
func NewCheckout(c CheckoutConfig) *checkout.Checkout {
	return checkout.New(checkout.Config{Sessions: c.Sessions, Mask: c.Settings.Masker, Confinable: c.Confinable,
		AskTime: c.AskTime, AcceptLate: c.AcceptLate, Source: func(ctx context.Context, st session.State) (checkout.Source, error) {
			s, err := c.Settings.Get(ctx, st.Owner)
			if err != nil && !errors.Is(err, settings.ErrNotFound) {
				return checkout.Source{}, err
			}
			src := checkout.Source{Folder: checkout.Folder(st.Created.Repository), Coauthored: Coauthor(st.Owner, s) != "",
				Confirm: s.Confirms()}
			if c.Folder != "" {
				src.Folder = "."
			}
			src.Template = src.Coauthored && c.Folder == "" // the home of a person is left alone
			src.URL, err = CloneURL(st.Created, s)
			if err != nil {
				return src, &sandbox.Unavailable{ID: api.CodeGitClone, Reason: "The repository " + st.Created.Repository + " cannot be cloned: " + err.Error() + "."}
			}
			return src, nil
		}})
}

// CloneURL is where the repository of a conversation is cloned from, "" if it has none.
func CloneURL(c session.Created, s settings.Settings) (string, error) {
	if c.Address != "" || c.Repository == "" {
		return c.Address, nil
	}
	return gitprovider.CloneURL(c.Provider, s.ProviderTokens[c.Provider].Host, c.Repository)
}

// Template has git init copy the co-author hook into new repositories, and our program git found first.
func Template(env map[string]string) {
	env[sandbox.PathFirst] = checkout.Programs
	configure(env, "init.templateDir", checkout.Template)
}

// ProtectBare makes git in a sandbox ignore a bare repository that it is not explicitly told to use. A project can contain
// one in an ordinary folder, with a configuration that runs programs.
func ProtectBare(env map[string]string) { configure(env, "safe.bareRepository", "explicit") }

// configure adds a setting of git to an environment, after the settings that are already there.
func configure(env map[string]string, key, value string) {
	n, err := strconv.Atoi(env["GIT_CONFIG_COUNT"])
	if err != nil || n < 0 {
		n = 0
	}
	at := strconv.Itoa(n)
	env["GIT_CONFIG_KEY_"+at], env["GIT_CONFIG_VALUE_"+at] = key, value
	env["GIT_CONFIG_COUNT"] = strconv.Itoa(n + 1)
}

// The author of commits whose user has not said who it is.
const (
	defaultName  = "deckhand"
	defaultEmail = "deckhand@localhost"
)

// Identify says in the environment who the agent's commits are by, so that it
// holds in every repository of this sandbox and in no other.
func Identify(env map[string]string, owner string, s settings.Settings) {
	name, email := Author(s)
	env["GIT_AUTHOR_NAME"], env["GIT_COMMITTER_NAME"] = name, name
	env["GIT_AUTHOR_EMAIL"], env["GIT_COMMITTER_EMAIL"] = email, email
	if line := Coauthor(owner, s); line != "" {
		env[checkout.Coauthor] = line
	}
}

// Author is who commits are by.
func Author(s settings.Settings) (name, email string) {
	name, email = defaultName, defaultEmail
	if s.GitUserName != nil && *s.GitUserName != "" {
		name = *s.GitUserName
	}
	if s.GitUserEmail != nil && *s.GitUserEmail != "" {
		email = *s.GitUserEmail
	}
	return name, email
}

// Coauthor is how commits name the user beside their author, "" if they need
// not: there is no address, or it is the author's own.
func Coauthor(owner string, s settings.Settings) string {
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

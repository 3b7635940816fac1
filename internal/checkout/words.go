package checkout

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"deckhand/api"
	"deckhand/internal/sandbox"
)

// The codes of what can go wrong.
const (
	cloneFailed   = api.CodeGitClone
	branchMissing = api.CodeGitBranch
	authFailed    = api.CodeGitAuthentication
)

// no says why the repository cannot be had.
func (w *work) no(id, why string) error {
	return &sandbox.Unavailable{ID: id, Reason: "The repository " + w.want.Repository + " cannot be cloned: " + strings.TrimRight(w.mask.String(why), ". ") + "."}
}

// refused turns what the sandbox says no to into words; other errors stay.
func (w *work) refused(err error) error {
	if words, ok := sandbox.Refusal(err); ok {
		return w.no(cloneFailed, words)
	}
	return err
}

// saying is a piece of what git says, and what it means.
type saying struct{ id, said, means string }

// sayings are looked for in this order; HOST stands for the host.
var sayings = []saying{
	{cloneFailed, "no space left on device", "the workspace is full"},
	{cloneFailed, "disk quota exceeded", "the workspace is full"},
	{cloneFailed, "from proxy after connect", "the network policy does not allow HOST, or it cannot be reached from here"},
	{cloneFailed, "connect tunnel failed", "the network policy does not allow HOST, or it cannot be reached from here"},
	{authFailed, "could not read username", "HOST wants to know who asks: there is no such public repository, and no stored token gives access to it"},
	{authFailed, "could not read password", "HOST wants to know who asks: there is no such public repository, and no stored token gives access to it"},
	{authFailed, "authentication failed", "HOST does not accept the stored token; store a new one in the settings"},
	{authFailed, "returned error: 401", "HOST does not accept the stored token; store a new one in the settings"},
	{authFailed, "returned error: 403", "HOST does not give access to it, or the network policy does not allow HOST"},
	{authFailed, "repository not found", "HOST has no such repository, or no stored token gives access to it"},
	{authFailed, "returned error: 404", "HOST has no such repository, or no stored token gives access to it"},
	{authFailed, "' not found", "HOST has no such repository, or no stored token gives access to it"},
	{cloneFailed, "transport '", "its address leads to a transport that is not allowed"},
	{cloneFailed, "maximum (", "HOST sends whoever asks in circles"},
	{cloneFailed, "from redirection", "HOST sends whoever asks to somewhere else, where there is no repository"},
	{cloneFailed, "is this a git repository", "there is no git repository at this URL of HOST"},
	{cloneFailed, "could not resolve", "the name HOST cannot be looked up"},
	{cloneFailed, "failed to connect", "HOST does not answer"},
	{cloneFailed, "couldn't connect", "HOST does not answer"},
	{cloneFailed, "operation too slow", "HOST sends nothing"},
	{cloneFailed, "timed out", "HOST does not answer"},
	{cloneFailed, "empty reply", "HOST does not answer"},
	{cloneFailed, "returned error: 5", "HOST cannot do it right now; try again later"},
	{cloneFailed, "certificate", "the certificate of HOST is not trusted in the sandbox"},
	{cloneFailed, "invalid path", "it has a file whose name is not allowed, since it could overwrite git's own files"},
	{cloneFailed, "early eof", "the answer of HOST broke off"},
	{cloneFailed, "unexpected disconnect", "the answer of HOST broke off"},
	{cloneFailed, "hung up", "the answer of HOST broke off"},
	{cloneFailed, "index-pack", "what HOST sent is damaged"},
	{cloneFailed, "corrupt", "what HOST sent is damaged"},
	{cloneFailed, "bad line length", "what HOST sent is damaged"},
	{cloneFailed, "protocol error", "what HOST sent is damaged"},
	{cloneFailed, "unable to read", "what HOST sent is damaged"},
}

// killed is the exit code of a program that was killed.
const killed = 128 + 9

// explain says in plain words why git failed.
func (w *work) explain(r sandbox.ProcessResult) error {
	text := string(r.Stderr)
	host := "the server"
	if u, err := url.Parse(w.src.URL); err == nil && u.Host != "" {
		host = u.Host
	}
	lower := strings.ToLower(text)
	for _, s := range sayings {
		if !strings.Contains(lower, s.said) {
			continue
		}
		why := strings.ReplaceAll(s.means, "HOST", host)
		if told := remote(text); told != "" {
			why += ". It says: " + told
		}
		return w.no(s.id, why)
	}
	if r.Exit == killed {
		return w.no(cloneFailed, "git was ended, perhaps because the repository is larger than the workspace may be")
	}
	return w.no(cloneFailed, "git says: "+last(text))
}

// remote is what the other side had to say, in one line.
func remote(text string) string {
	var said []string
	for line := range strings.SplitSeq(text, "\n") {
		if words, ok := strings.CutPrefix(line, "remote: "); ok && strings.TrimSpace(words) != "" {
			said = append(said, strings.TrimSpace(words))
		}
	}
	return clip(strings.Join(said, " "))
}

// last is the last line that git says, which tells most.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return clip(strings.TrimPrefix(strings.TrimSpace(lines[len(lines)-1]), "fatal: "))
}

// maxWords is how much of somebody else's words is passed on.
const maxWords = 300

func clip(s string) string {
	s = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, s), "")
	if len(s) <= maxWords {
		return s
	}
	return strings.ToValidUTF8(s[:maxWords], "") + "…"
}

package checkout

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"deckhand/api"
	"deckhand/internal/clip"
	"deckhand/internal/sandbox"
)

// Error codes.
const (
	cloneFailed   = api.CodeGitClone
	branchMissing = api.CodeGitBranch
	authFailed    = api.CodeGitAuthentication
)

// no returns the error that the repository cannot be cloned.
func (w *work) no(id, why string) error {
	return &sandbox.Unavailable{ID: id, Reason: "The repository " + w.want.Repository + " cannot be cloned: " + strings.TrimRight(w.mask.String(why), ". ") + "."}
}

// refused translates refusals of the sandbox; other errors are returned unchanged.
func (w *work) refused(err error) error {
	if words, ok := sandbox.Refusal(err); ok {
		return w.no(cloneFailed, words)
	}
	return err
}

// saying is a part of git's output and its explanation.
type saying struct{ id, said, means string }

// sayings are matched in this order; HOST is replaced by the host.
var sayings = []saying{
	{cloneFailed, "no space left on device", "the workspace is full"},
	{cloneFailed, "disk quota exceeded", "the workspace is full"},
	{cloneFailed, "from proxy after connect", "the network policy does not allow HOST, or HOST cannot be reached"},
	{cloneFailed, "connect tunnel failed", "the network policy does not allow HOST, or HOST cannot be reached"},
	{authFailed, "could not read username", "HOST requires authentication: the repository is not public, or it does not exist; store a token with access to it in the settings"},
	{authFailed, "could not read password", "HOST requires authentication: the repository is not public, or it does not exist; store a token with access to it in the settings"},
	{authFailed, "authentication failed", "HOST rejected the stored token; store a new one in the settings"},
	{authFailed, "returned error: 401", "HOST rejected the stored token; store a new one in the settings"},
	{authFailed, "returned error: 403", "HOST denied access, or the network policy does not allow HOST"},
	{authFailed, "repository not found", "not found on HOST, or the stored token has no access to it"},
	{authFailed, "returned error: 404", "not found on HOST, or the stored token has no access to it"},
	{authFailed, "' not found", "not found on HOST, or the stored token has no access to it"},
	{cloneFailed, "transport '", "its URL uses a protocol that is not allowed"},
	{cloneFailed, "maximum (", "too many redirects from HOST"},
	{cloneFailed, "from redirection", "HOST redirects to a URL without a git repository"},
	{cloneFailed, "is this a git repository", "there is no git repository at this URL of HOST"},
	{cloneFailed, "could not resolve", "the host name HOST cannot be resolved"},
	{cloneFailed, "failed to connect", "HOST does not respond"},
	{cloneFailed, "couldn't connect", "HOST does not respond"},
	{cloneFailed, "operation too slow", "HOST stopped sending data"},
	{cloneFailed, "timed out", "HOST does not respond"},
	{cloneFailed, "empty reply", "HOST does not respond"},
	{cloneFailed, "returned error: 5", "HOST returned a server error; try again later"},
	{cloneFailed, "certificate", "the certificate of HOST is not trusted in the sandbox"},
	{cloneFailed, "invalid path", "it contains a file name that is not allowed, because it could overwrite git's own files"},
	{cloneFailed, "early eof", "HOST closed the connection early; try again"},
	{cloneFailed, "unexpected disconnect", "HOST closed the connection early; try again"},
	{cloneFailed, "hung up", "HOST closed the connection early; try again"},
	{cloneFailed, "index-pack", "HOST sent invalid data; try again"},
	{cloneFailed, "corrupt", "HOST sent invalid data; try again"},
	{cloneFailed, "bad line length", "HOST sent invalid data; try again"},
	{cloneFailed, "protocol error", "HOST sent invalid data; try again"},
	{cloneFailed, "unable to read", "HOST sent invalid data; try again"},
}

// killed is the exit code of a killed program.
const killed = 128 + 9

// explain says why git failed.
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
		return w.no(cloneFailed, "git was killed, possibly because the repository exceeds the disk or memory limit of the sandbox")
	}
	return w.no(cloneFailed, "git says: "+last(text))
}

// remote returns the message of the remote in one line.
func remote(text string) string {
	var said []string
	for line := range strings.SplitSeq(text, "\n") {
		if words, ok := strings.CutPrefix(line, "remote: "); ok && strings.TrimSpace(words) != "" {
			said = append(said, strings.TrimSpace(words))
		}
	}
	return printable(strings.Join(said, " "))
}

// last returns the last line of git's output, which says most.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return printable(strings.TrimPrefix(strings.TrimSpace(lines[len(lines)-1]), "fatal: "))
}

// maxWords is the maximum length of a quoted message.
const maxWords = 300

// printable removes control characters and limits the length.
func printable(s string) string {
	s = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, s), "")
	return clip.Bytes(s, maxWords)
}

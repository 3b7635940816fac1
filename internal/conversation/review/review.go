// Package review has the use cases for reviewing and landing an agent's changes: listing, reverting and
// staging the changes of a range, commits, pushes and pull requests. Git runs in the conversation's sandbox; pull requests are opened by the
// server with the user's stored token.
package review

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"deckhand/api"
	"deckhand/internal/checkout"
	"deckhand/internal/conversation"
	"deckhand/internal/gitaccess"
	"deckhand/internal/gitprovider"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/workspace"
)

// Service carries out the use cases. It has no state of its own.
type Service struct {
	Conversations *conversation.Service
	Sessions      *session.Sessions
	Settings      *settings.Service
	// Workspaces manages the sandboxes; nil if there are none.
	Workspaces *workspace.Keeper
	// Ask asks the user's model; nil if there is none.
	Ask func(ctx context.Context, user, system, question string) (string, error)
	// Forges opens git providers; nil if there are none.
	Forges *gitaccess.Forges
}

func refuse(kind conversation.Kind, code, text string) *conversation.Refusal {
	return &conversation.Refusal{Kind: kind, Code: code, Text: text}
}

// Refusal turns an error of git in a workspace into a refusal; other errors are returned as they are.
func Refusal(err error) error {
	words, said := sandbox.Refusal(err)
	switch {
	case err == nil, errors.Is(err, sandbox.ErrLost), errors.Is(err, sandbox.ErrGone):
		return err
	case errors.Is(err, sandbox.ErrNoRepo):
		return refuse(conversation.NotFound, api.CodeNoRepository, "Not a git repository")
	case errors.Is(err, sandbox.ErrChanged):
		return refuse(conversation.Conflict, api.CodeConflict, "A file has changed since it was shown. Nothing was changed. Refresh and try again.")
	case errors.Is(err, sandbox.ErrBusy):
		return refuse(conversation.Conflict, api.CodeConflict, "Another git command is running in the repository. Try again when it has finished.")
	case errors.Is(err, fs.ErrNotExist):
		return refuse(conversation.NotFound, api.CodeNotFound, "File or folder not found in the workspace.")
	case errors.Is(err, sandbox.ErrEscapes):
		return api.Invalid("value_error", "The path is outside the workspace.", "path")
	case errors.Is(err, sandbox.ErrInvalid):
		return refuse(conversation.Conflict, api.CodeConflict, conversation.Sentence(strings.TrimPrefix(words, sandbox.ErrInvalid.Error()+": ")))
	case errors.Is(err, sandbox.ErrTooBig), errors.Is(err, fs.ErrPermission), errors.Is(err, sandbox.ErrBinary):
		return err
	case said:
		return refuse(conversation.Conflict, api.CodeConflict, "git failed: "+words)
	}
	return err
}

// view opens the workspace of the user's conversation for reading. It does not start the sandbox.
func (s *Service) view(ctx context.Context, user string, id session.ID) (*workspace.View, error) {
	if err := s.check(ctx, user, id); err != nil {
		return nil, err
	}
	return s.Workspaces.View(ctx, id)
}

func (s *Service) check(ctx context.Context, user string, id session.ID) error {
	if _, err := s.Conversations.Row(ctx, user, id); err != nil {
		return err
	}
	if s.Workspaces == nil {
		return workspace.ErrNone
	}
	return nil
}

// use returns the sandbox of the user's conversation and starts it if needed.
func (s *Service) use(ctx context.Context, user string, id session.ID, do func(*sandbox.Sandbox) error) error {
	if err := s.check(ctx, user, id); err != nil {
		return err
	}
	box, leave, err := s.Workspaces.Use(ctx, id)
	if err != nil {
		return err
	}
	defer leave()
	return Refusal(do(box))
}

// look reads from the workspace. If the sandbox ends during the read, because the conversation is stopped, it reads once more,
// from the files on disk.
func look[T any](ctx context.Context, s *Service, user string, id session.ID, read func(*workspace.View) (T, error)) (out T, err error) {
	for range 2 {
		var v *workspace.View
		if v, err = s.view(ctx, user, id); err == nil {
			out, err = read(v)
			v.Close()
		}
		if !errors.Is(err, sandbox.ErrGone) && !errors.Is(err, sandbox.ErrLost) {
			break
		}
	}
	return out, Refusal(err)
}

// Changes lists the changes in a range.
func (s *Service) Changes(ctx context.Context, user string, id session.ID, in sandbox.GitRange) (sandbox.GitReview, error) {
	return look(ctx, s, user, id, func(v *workspace.View) (sandbox.GitReview, error) { return v.Review(ctx, in) })
}

// Compare returns a file before and after the changes of a range.
func (s *Service) Compare(ctx context.Context, user string, id session.ID, p sandbox.GitCompareParams) (sandbox.GitComparison, error) {
	if err := outsideGit(p.Path, p.From); err != nil {
		return sandbox.GitComparison{}, err
	}
	return look(ctx, s, user, id, func(v *workspace.View) (sandbox.GitComparison, error) { return v.Compare(ctx, p) })
}

// Hunk is a part of a file: a first line and a number of lines, in both versions. Lines count from 1.
type Hunk struct{ OriginalStart, OriginalLines, ModifiedStart, ModifiedLines int }

// Revert reverts files that have not changed since they were shown.
func (s *Service) Revert(ctx context.Context, user string, id session.ID, p sandbox.GitRevertParams) error {
	for _, f := range p.Files {
		if err := outsideGit(f.Path, f.From); err != nil {
			return err
		}
	}
	return s.use(ctx, user, id, func(box *sandbox.Sandbox) error { return box.GitRevert(ctx, p) })
}

// outsideGit refuses paths into git's own folder: what is in it is no change, and reverting it would break the repository.
func outsideGit(paths ...[]byte) error {
	for _, path := range paths {
		for part := range strings.SplitSeq(string(path), "/") {
			if strings.EqualFold(part, ".git") {
				return api.Invalid("value_error", "The path is inside a .git folder.", "path")
			}
		}
	}
	return nil
}

// RevertHunk reverts a part of a file that has not changed since it was shown.
func (s *Service) RevertHunk(ctx context.Context, user string, id session.ID, in sandbox.GitRange, f sandbox.GitRevertFile, h Hunk) error {
	if err := outsideGit(f.Path, f.From); err != nil {
		return err
	}
	return s.use(ctx, user, id, func(box *sandbox.Sandbox) error {
		c, err := box.GitCompare(ctx, sandbox.GitCompareParams{GitRange: in, Path: f.Path, From: f.From})
		if err != nil {
			return err
		}
		if c.ETag != f.ETag {
			return sandbox.ErrChanged
		}
		if c.Original == nil || c.Modified == nil || c.Original.Text == nil || c.Modified.Text == nil {
			return refuse(conversation.Conflict, api.CodeConflict, "Only text files that exist in both versions have hunks. Revert the whole file.")
		}
		now, err := h.undo(*c.Original.Text, *c.Modified.Text)
		if err != nil {
			return err
		}
		_, err = box.Write(ctx, sandbox.WriteParams{PathParams: sandbox.InWorkspace(string(f.Path)), Match: sandbox.Sum([]byte(*c.Modified.Text))}, strings.NewReader(now))
		return err
	})
}

// undo replaces the hunk's lines with the original ones.
func (h Hunk) undo(original, modified string) (string, error) {
	before, after := splitLines(original), splitLines(modified)
	was, end, ok := bounds(h.OriginalStart, h.OriginalLines, len(before))
	now, rest, fits := bounds(h.ModifiedStart, h.ModifiedLines, len(after))
	if !ok || !fits {
		return "", api.Invalid("value_error", "The hunk is outside the file.", "hunk")
	}
	out := append([]string{}, after[:now]...)
	out = append(out, before[was:end]...)
	return strings.Join(append(out, after[rest:]...), ""), nil
}

// bounds returns the start and end of a hunk in n lines. In editors, a text that ends with a line break has an empty line
// after it.
func bounds(start, lines, n int) (from, to int, ok bool) {
	from, to = start-1, start-1+lines
	if from < 0 || lines < 0 || to > n+1 {
		return 0, 0, false
	}
	return min(from, n), min(to, n), true
}

// splitLines splits a text after each line break, as editors do: CR LF, LF, or CR alone.
func splitLines(text string) (lines []string) {
	for text != "" {
		i := strings.IndexAny(text, "\r\n")
		switch {
		case i < 0:
			i = len(text)
		case strings.HasPrefix(text[i:], "\r\n"):
			i += 2
		default:
			i++
		}
		lines, text = append(lines, text[:i]), text[i:]
	}
	return lines
}

// Stage stages or unstages files.
func (s *Service) Stage(ctx context.Context, user string, id session.ID, p sandbox.GitStageParams) error {
	if err := outsideGit(p.Paths...); err != nil {
		return err
	}
	return s.use(ctx, user, id, func(box *sandbox.Sandbox) error { return box.GitStage(ctx, p) })
}

// Commit commits in a repository of the workspace, with the author in the user's settings.
func (s *Service) Commit(ctx context.Context, user string, id session.ID, p sandbox.GitCommitParams) (sandbox.GitCommitted, error) {
	if p.Branch != "" && !gitprovider.ValidBranch(p.Branch) {
		return sandbox.GitCommitted{}, api.Invalid("value_error", "The branch name is not valid.", "branch")
	}
	stored, err := s.stored(ctx, user)
	if err != nil {
		return sandbox.GitCommitted{}, err
	}
	p.Name, p.Email = gitaccess.Author(stored)
	if line := gitaccess.Coauthor(user, stored); line != "" && !strings.Contains(p.Message, line) {
		p.Message = strings.TrimSpace(p.Message) + "\n\nCo-authored-by: " + line + "\n"
	}
	var out sandbox.GitCommitted
	return out, s.use(ctx, user, id, func(box *sandbox.Sandbox) (err error) {
		out, err = box.GitCommit(ctx, p)
		return err
	})
}

func (s *Service) stored(ctx context.Context, user string) (settings.Settings, error) {
	found, err := s.Settings.Get(ctx, user)
	if errors.Is(err, settings.ErrNotFound) {
		return settings.Settings{}, nil
	}
	return found, err
}

// Push pushes the checked-out commit of a repository to a branch of the conversation's repository.
func (s *Service) Push(ctx context.Context, user string, id session.ID, folder, branch string) error {
	st, stored, err := s.own(ctx, user, id)
	if err != nil {
		return err
	}
	if !gitprovider.ValidBranch(branch) {
		return api.Invalid("value_error", "The branch name is not valid.", "branch")
	}
	url, err := gitaccess.CloneURL(st.Created, stored)
	if err != nil {
		return refuse(conversation.Unmet, api.CodeGitClone, conversation.Sentence(err.Error()))
	}
	masker, err := s.Settings.Masker(ctx, user)
	if err != nil {
		return err
	}
	return s.use(ctx, user, id, func(box *sandbox.Sandbox) error {
		err := checkout.Push(ctx, box, folder, url, branch)
		if failed := (*checkout.PushError)(nil); errors.As(err, &failed) {
			return refuse(conversation.Conflict, api.CodeConflict, "The push failed. git says: "+masker.String(failed.Said))
		}
		return err
	})
}

// own returns the user's conversation if it has a repository.
func (s *Service) own(ctx context.Context, user string, id session.ID) (session.State, settings.Settings, error) {
	if err := s.check(ctx, user, id); err != nil {
		return session.State{}, settings.Settings{}, err
	}
	st, err := s.Sessions.Load(ctx, id)
	if err != nil {
		return st, settings.Settings{}, err
	}
	if st.Created.Repository == "" {
		return st, settings.Settings{}, refuse(conversation.Conflict, api.CodeConflict, "The conversation has no repository to push to. Start a conversation with a repository.")
	}
	stored, err := s.stored(ctx, user)
	return st, stored, err
}

// Proposal is a pull request to open in the conversation's repository.
type Proposal struct {
	Title, Body, Source, Target string
	Draft                       bool
	Reviewers                   []string
}

// Proposed is a pull request that was opened. Warning says what failed.
type Proposed struct {
	session.RequestOpened
	Draft, Known bool
	Warning      string
}

// Propose opens a pull request from a branch that was pushed.
func (s *Service) Propose(ctx context.Context, user string, id session.ID, p Proposal) (Proposed, error) {
	st, stored, err := s.own(ctx, user, id)
	if err != nil {
		return Proposed{}, err
	}
	provider := st.Created.Provider
	if provider == "" || s.Forges == nil || stored.ProviderTokens[provider].Token.IsZero() {
		return Proposed{}, refuse(conversation.Unmet, api.CodeGitAuthentication, "Pull requests need a token for the git provider of the repository. Add one in the settings under Git.")
	}
	made, err := s.Forges.ProposeFor(ctx, user, st, gitprovider.Proposal{Title: p.Title, Body: p.Body, Source: p.Source, Target: p.Target, Draft: p.Draft}, p.Reviewers)
	if err != nil {
		return Proposed{}, forgeRefusal(err)
	}
	out := Proposed{RequestOpened: session.RequestOpened{Provider: provider, Repository: st.Created.Repository, Number: made.Number, URL: made.URL,
		Title: made.Title, Source: p.Source, Target: p.Target}, Draft: made.Draft, Known: made.Known}
	if made.Unreviewed != "" {
		out.Warning = "The reviewers could not be asked: " + made.Unreviewed
	}
	return out, nil
}

// forgeRefusal returns a git provider's refusal with its message.
func forgeRefusal(err error) error {
	var said *gitprovider.Error
	if errors.As(err, &said) {
		return refuse(conversation.Conflict, api.CodeConflict, said.Message)
	}
	if invalid := gitaccess.ProposalError(err); invalid != "" {
		return refuse(conversation.Conflict, api.CodeConflict, invalid)
	}
	return err
}

// Request is a pull request of a conversation in its current state at the git provider.
type Request struct {
	session.RequestOpened
	State    string
	Draft    bool
	Checks   []string
	Comments []string
	// Problem says why the provider did not return it; "" if it did.
	Problem string
}

// maxRequests is the maximum number of pull requests that are read.
const maxRequests = 5

// Requests returns the newest pull requests of a conversation, newest first, with their checks and comments.
func (s *Service) Requests(ctx context.Context, user string, id session.ID) ([]Request, error) {
	if _, err := s.Conversations.Row(ctx, user, id); err != nil {
		return nil, err
	}
	st, err := s.Sessions.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	out := []Request{}
	for i := len(st.Requests) - 1; i >= 0 && len(out) < maxRequests; i-- {
		r := Request{RequestOpened: st.Requests[i]}
		if err := s.look(ctx, user, &r); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			var said *gitprovider.Error
			if !errors.As(err, &said) {
				return nil, err
			}
			r.Problem = said.Message
		}
		out = append(out, r)
	}
	return out, nil
}

func (s *Service) look(ctx context.Context, user string, r *Request) error {
	if s.Forges == nil {
		return &gitprovider.Error{Reason: gitprovider.Unsupported, Message: "No git provider is configured."}
	}
	forge, err := s.Forges.Open(ctx, user, r.Provider)
	if err != nil {
		return err
	}
	now, err := forge.Request(ctx, r.Repository, r.Number)
	if err != nil {
		return err
	}
	r.State, r.Draft = now.State, now.Draft
	talk, err := forge.Discussion(ctx, r.Repository, r.Number)
	if err != nil {
		return err
	}
	r.Checks, r.Comments = talk.Checks, talk.Comments
	return nil
}

// name returns a path as shown to users.
func name(path []byte) string { return api.EncodeName(path) }

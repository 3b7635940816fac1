package profile

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/agent"
	"deckhand/internal/clip"
	"deckhand/internal/gitaccess"
	"deckhand/internal/knowledge"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/v0"
	"deckhand/internal/workspace"
)

// reportTime bounds what is written for people beside the work.
const reportTime = 10 * time.Second

// Recall implements agent.Config.Recall.
func (b *Builder) Recall(ctx context.Context, st session.State, said session.UserSaid, o agent.Occasion) (session.Recalled, error) {
	scope, done := b.scope(ctx, st)
	defer done()
	found, err := b.library.Recall(ctx, knowledge.Request{Scope: scope, Message: said.Text, First: o.First, Known: o.Known})
	if err != nil {
		return session.Recalled{}, err
	}
	for _, p := range found.Problems {
		b.Logger.Info("cannot use a microagent or skill", "session", st.ID, "file", p.File, "why", p.Sentence)
	}
	if !o.First && len(found.Items) == 0 {
		return session.Recalled{}, nil
	}
	in := knowledge.ContextInput{Recalled: found}
	d := v0.RecallDetails{Type: "knowledge"}
	if o.First {
		top, err := b.top(ctx, st)
		if err != nil {
			return session.Recalled{}, err
		}
		in.Repository, in.Branch, in.WorkingDir, in.Date = st.Created.Repository, st.Created.Branch, b.Workdir, time.Now().UTC()
		if c := top.Checkout; c != nil {
			in.Directory, in.Branch, in.WorkingDir, in.Trouble = c.Dir, c.Branch, c.Dir, troubles(top)
		}
		if b.FrontEnd {
			in.Ports = v0.AppPorts(top.ID)
		}
		if in.Secrets, err = b.secretNames(ctx, top); err != nil {
			return session.Recalled{}, err
		}
		d = v0.RecallDetails{Type: "workspace_context", RepoName: in.Repository, RepoDirectory: in.Directory, RepoBranch: in.Branch, RepoInstructions: found.Instructions, Date: in.Date.Format(time.DateOnly),
			Secrets: in.Secrets, ConversationInstructions: st.Created.Instructions, WorkingDir: in.WorkingDir}
	}
	masker, err := b.Settings.Masker(ctx, st.Owner)
	if err != nil {
		return session.Recalled{}, err
	}
	out := session.Recalled{Text: masker.String(knowledge.Context(in))}
	for _, item := range found.Items {
		out.Items = append(out.Items, session.Knowledge{Name: item.Name, Trigger: item.Trigger, Content: item.Content})
	}
	out.Details, err = json.Marshal(d)
	return out, err
}

// secretNames describes the secrets in the sandbox's environment, never their values.
func (b *Builder) secretNames(ctx context.Context, st session.State) (map[string]string, error) {
	out := map[string]string{}
	err := b.Settings.Read(ctx, st.Owner, func(s *settings.Settings) {
		for name, c := range gitaccess.CustomSecrets(st, *s) {
			out[name] = c.Description
		}
	})
	if errors.Is(err, settings.ErrNotFound) {
		err = nil
	}
	return out, err
}

// scope is whose knowledge a session has: with the files of its workspace, if
// they can be read without waiting for a sandbox.
func (b *Builder) scope(ctx context.Context, st session.State) (knowledge.Scope, func()) {
	scope := knowledge.Scope{User: st.Owner, RepoDir: b.Workdir, Key: string(st.ID)}
	st, err := b.top(ctx, st)
	if err != nil {
		return scope, func() {}
	}
	if st.Checkout != nil {
		scope.RepoDir = st.Checkout.Dir
	}
	if b.Slow && !st.Up {
		return scope, func() {}
	}
	view, err := b.Keeper.View(ctx, st.ID)
	if err != nil {
		if !errors.Is(err, workspace.ErrNone) && !errors.Is(err, sandbox.ErrUnseen) && ctx.Err() == nil {
			b.Logger.Debug("cannot read a workspace", "session", st.ID, "error", err)
		}
		return scope, func() {}
	}
	scope.Repo = repositoryFiles(view.FS(ctx), st.Checkout)
	return scope, view.Close
}

// readSkill implements skill.Read.
func (b *Builder) readSkill(ctx context.Context, id, _, name, file string) (string, error) {
	st, err := b.Sessions.Load(ctx, session.ID(id))
	if err != nil {
		return "", err
	}
	scope, done := b.scope(ctx, st)
	defer done()
	return b.library.Skill(ctx, scope, name, file)
}

// searchKey finds the key of the search service.
func (b *Builder) searchKey(ctx context.Context, owner string) (string, error) {
	key := ""
	err := b.Settings.Read(ctx, owner, func(s *settings.Settings) { key = s.SearchAPIKey.Reveal() })
	return key, err
}

// MicroagentList implements conversations.Config.Microagents.
func (b *Builder) MicroagentList(ctx context.Context, _ string, id session.ID) ([]api.Microagent, error) {
	st, err := b.Sessions.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	scope, done := b.scope(ctx, st)
	defer done()
	found, err := b.library.List(ctx, scope)
	var out []api.Microagent
	for _, m := range found {
		v := api.Microagent{Name: m.Name, Type: "knowledge", Content: m.Content, Triggers: m.Triggers}
		if m.Kind == knowledge.Repo {
			v.Type = "repo"
		}
		for _, in := range m.Inputs {
			v.Inputs = append(v.Inputs, api.MicroagentInput{Name: in.Name, Description: in.Description})
		}
		for _, s := range m.Servers {
			v.Tools = append(v.Tools, s.Name)
		}
		out = append(out, v)
	}
	return out, err
}

// RepositoryFiles implements command.RepositoryFiles.
func (b *Builder) RepositoryFiles(ctx context.Context, id session.ID) (fs.FS, func(), error) {
	st, err := b.Sessions.Load(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	scope, done := b.scope(ctx, st)
	return scope.Repo, done, nil
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
	return "…" + clip.End(s, maxTail)
}

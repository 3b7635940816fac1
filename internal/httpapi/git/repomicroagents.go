package git

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/gitprovider"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/knowledge"
)

const aboutRepositoryName = "Slashes in the repository name may be escaped or not. " + aboutSeveral

// Where microagents are in a repository. An organisation has one repository
// whose folders hold for all its others; there they lie at the top.
const agentsFolder = ".openhands"

var (
	agentFolders = []string{"microagents", "skills"}
	agentFiles   = map[string]bool{".cursorrules": true, "AGENTS.md": true, "agents.md": true, "AGENT.md": true}
)

// What is looked at in a repository at most.
const (
	maxAgentDepth   = 3
	MaxAgentFolders = 40
	MaxAgentFiles   = 500
)

// FoldRepository escapes the slashes of a repository's name, which may have any
// number of parts, so that the name is one part of the path.
func FoldRepository(r *http.Request) *http.Request {
	const before = "/api/user/repository/"
	name, ok := strings.CutPrefix(r.URL.Path, before)
	if !ok {
		return r
	}
	for _, after := range []string{"/microagents", "/microagents/content"} {
		if name, ok := strings.CutSuffix(name, after); ok && strings.Contains(name, "/") {
			folded := r.Clone(r.Context())
			folded.URL.RawPath = before + url.PathEscape(name) + after
			return folded
		}
	}
	return r
}

type microagentsQuery struct {
	Repository string `path:"repository_name" maxLength:"500"`
	Provider   string `query:"selected_provider" enum:"git_provider" doc:"Query only this provider."`
}

func (d *Handlers) repositoryMicroagents(ctx context.Context, c *rest.Call, q microagentsQuery, _ rest.None) ([]api.RepositoryMicroagent, error) {
	if err := checkRepository("path", "repository_name", q.Repository); err != nil {
		return nil, err
	}
	all, err := d.forges(ctx, c.Who.User, q.Provider, NeedToken)
	if err != nil {
		return nil, err
	}
	a, err := askAny(ctx, d, c, all, func(ctx context.Context, f forge) ([]api.RepositoryMicroagent, error) {
		return findMicroagents(ctx, f, q.Repository)
	})
	return rest.OrEmpty(a.value), err
}

// walk goes through the folders of a repository over the network.
type walk struct {
	forge      forge
	repository string
	folders    int
	found      []api.RepositoryMicroagent
	now        time.Time
}

func findMicroagents(ctx context.Context, f forge, repository string) ([]api.RepositoryMicroagent, error) {
	w := &walk{forge: f, repository: repository, now: time.Now().UTC()}
	top, err := f.Folder(ctx, repository, "", "")
	if gitprovider.ReasonOf(err) == gitprovider.NotFound { // empty, or not there
		_, err = f.Repository(ctx, repository)
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	base, here := agentsFolder, top
	if isOrgRepository(f.name, repository) {
		base = ""
	} else if has(top, agentsFolder) {
		if here, err = f.Folder(ctx, repository, "", agentsFolder); err != nil {
			return nil, err
		}
	} else {
		here = nil
	}
	for _, name := range agentFolders {
		if has(here, name) {
			if err := w.into(ctx, path.Join(base, name), "", 1); err != nil {
				return nil, err
			}
		}
	}
	for _, file := range top {
		if !file.Folder && agentFiles[file.Name] {
			w.add(strings.TrimPrefix(strings.TrimSuffix(file.Name, ".md"), "."), file.Path)
		}
	}
	return w.found, nil
}

// into lists the texts in a folder and those below it, as far as that goes.
func (w *walk) into(ctx context.Context, folder, prefix string, depth int) error {
	if w.folders++; w.folders > MaxAgentFolders {
		return nil
	}
	files, err := w.forge.Folder(ctx, w.repository, "", folder)
	if err != nil {
		return err
	}
	for _, f := range files {
		name, isText := strings.CutSuffix(f.Name, ".md")
		switch {
		case f.Folder && depth < maxAgentDepth:
			if err := w.into(ctx, path.Join(folder, f.Name), prefix+f.Name+"/", depth+1); err != nil {
				return err
			}
		case !f.Folder && isText && !strings.EqualFold(name, "README"):
			w.add(prefix+name, f.Path)
		}
	}
	return nil
}

func (w *walk) add(name, file string) {
	if len(w.found) < MaxAgentFiles {
		w.found = append(w.found, api.RepositoryMicroagent{Name: name, Path: file, CreatedAt: w.now})
	}
}

func has(files []gitprovider.File, folder string) bool {
	for _, f := range files {
		if f.Folder && f.Name == folder {
			return true
		}
	}
	return false
}

func isOrgRepository(provider, repository string) bool {
	return path.Base(repository) == gitprovider.Describe(provider).OrgRepository
}

type microagentQuery struct {
	Repository string `path:"repository_name" maxLength:"500"`
	File       string `query:"file_path" required:"true" minLength:"1" maxLength:"1000" doc:"Path of the file in the repository."`
	Provider   string `query:"selected_provider" enum:"git_provider" doc:"Query only this provider."`
}

func (d *Handlers) repositoryMicroagent(ctx context.Context, c *rest.Call, q microagentQuery, _ rest.None) (api.MicroagentContent, error) {
	if err := checkRepository("path", "repository_name", q.Repository); err != nil {
		return api.MicroagentContent{}, err
	}
	if clean := path.Clean(q.File); clean != q.File || clean == "." || path.IsAbs(clean) || strings.HasPrefix(clean, "..") || strings.Contains(clean, `\`) {
		return api.MicroagentContent{}, &api.ValidationError{Detail: []api.FieldError{{Loc: []any{"query", "file_path"}, Type: "value_error",
			Msg: "file_path must be a path in the repository, as returned by the list."}}}
	}
	all, err := d.forges(ctx, c.Who.User, q.Provider, NeedToken)
	if err != nil {
		return api.MicroagentContent{}, err
	}
	a, err := askAny(ctx, d, c, all, func(ctx context.Context, f forge) ([]byte, error) { return f.File(ctx, q.Repository, "", q.File) })
	if err != nil {
		return api.MicroagentContent{}, err
	}
	out := api.MicroagentContent{Content: strings.ToValidUTF8(string(a.value), "\ufffd"), Path: q.File, Triggers: []string{}, GitProvider: &a.forge.name}
	if m, err := knowledge.Parse(q.File, out.Content); err == nil { // a broken one is shown as it is, to be mended
		out.Content, out.Triggers = m.Content, rest.OrEmpty(m.Triggers)
	}
	return out, nil
}

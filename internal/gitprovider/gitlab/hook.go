package gitlab

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"slices"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"deckhand/internal/clip"
	"deckhand/internal/gitprovider"
)

type hookLabel struct {
	Title string `json:"title"`
}

type hookThing struct {
	Number        int         `json:"iid"`
	Title         string      `json:"title"`
	Description   string      `json:"description"`
	URL           string      `json:"url"`
	AuthorID      int64       `json:"author_id"`
	UpdatedAt     string      `json:"updated_at"`
	SourceBranch  string      `json:"source_branch"`
	SourceProject int64       `json:"source_project_id"`
	TargetProject int64       `json:"target_project_id"`
	Labels        []hookLabel `json:"labels"`
	Action        string      `json:"action"`
	// Of a note:
	Note         string `json:"note"`
	NoteableType string `json:"noteable_type"`
	System       bool   `json:"system"`
	CreatedAt    string `json:"created_at"`
}

type hookPayload struct {
	Kind string `json:"object_kind"`
	User struct {
		ID       int64  `json:"id"`
		Username string `json:"username"`
	} `json:"user"`
	Project struct {
		Path string `json:"path_with_namespace"`
	} `json:"project"`
	Object  hookThing   `json:"object_attributes"`
	Labels  []hookLabel `json:"labels"`
	Issue   *hookThing  `json:"issue"`
	Merge   *hookThing  `json:"merge_request"`
	Changes struct {
		Labels *struct {
			Previous []hookLabel `json:"previous"`
			Current  []hookLabel `json:"current"`
		} `json:"labels"`
		Description *struct{} `json:"description"`
	} `json:"changes"`
}

// readHook parses a webhook request of GitLab.
func readHook(name string, payload []byte) (gitprovider.HookEvent, error) {
	var p hookPayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return gitprovider.HookEvent{}, err
	}
	e := gitprovider.HookEvent{Name: name, Actors: gitprovider.Present(p.User.Username), Thread: gitprovider.Thread{Repository: p.Project.Path}}
	if p.Object.Action != "" {
		e.Name += " " + clip.Start(p.Object.Action, 40)
	}
	o := p.Object
	switch {
	case p.Kind == "issue":
		e.Kind = p.issueKind(&e)
		e.Number, e.Title, e.URL, e.Text, e.At = o.Number, o.Title, o.URL, o.Description, gitprovider.HookTime(o.UpdatedAt)
		// Old versions identify the actor only by name; then only a new issue is
		// certain to be theirs.
		e.Wrote = o.Action == "open" || p.User.ID != 0 && p.User.ID == o.AuthorID
		for _, l := range append(p.Labels, o.Labels...) {
			e.Labels = append(e.Labels, l.Title)
		}
	case p.Kind == "note" && !o.System && o.Action != "update":
		about := p.Issue
		if e.Pull = o.NoteableType == "MergeRequest"; e.Pull {
			about = p.Merge
		}
		if about == nil || !e.Pull && o.NoteableType != "Issue" {
			return e, nil // on a commit or a snippet
		}
		e.Kind, e.Text, e.Wrote, e.URL, e.At = gitprovider.Commented, o.Note, true, o.URL, gitprovider.HookTime(o.CreatedAt)
		e.Number, e.Title = about.Number, about.Title
		if e.Pull && about.SourceProject == about.TargetProject {
			e.Branch = about.SourceBranch
		}
	}
	return e, nil
}

// issueKind distinguishes a new text from a new label; GitLab reports both as an update.
func (p hookPayload) issueKind(e *gitprovider.HookEvent) gitprovider.HookKind {
	switch {
	case p.Object.Action == "open":
		return gitprovider.Opened
	case p.Object.Action != "update":
		return gitprovider.Other
	case p.Changes.Labels != nil:
		for _, l := range p.Changes.Labels.Current {
			if !slices.Contains(p.Changes.Labels.Previous, l) {
				e.Label = l.Title
				return gitprovider.Labelled
			}
		}
		return gitprovider.Other
	case p.Changes.Description != nil:
		return gitprovider.Edited
	}
	return gitprovider.Other
}

// hookSigned accepts GitLab's signature, or the secret itself, which is all that older
// versions send.
func hookSigned(h http.Header, body []byte, secret string) bool {
	if h.Get("Webhook-Signature") != "" {
		if hook, err := standardwebhooks.NewWebhook(secret); err == nil && hook.Verify(body, h) == nil {
			return true
		}
	}
	token := h.Get("X-Gitlab-Token")
	return token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(secret)) == 1
}

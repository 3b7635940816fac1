package trigger

import "slices"

// What GitLab sends.

type labLabel struct {
	Title string `json:"title"`
}

type labThing struct {
	Number        int        `json:"iid"`
	Title         string     `json:"title"`
	Description   string     `json:"description"`
	URL           string     `json:"url"`
	AuthorID      int64      `json:"author_id"`
	UpdatedAt     string     `json:"updated_at"`
	SourceBranch  string     `json:"source_branch"`
	SourceProject int64      `json:"source_project_id"`
	TargetProject int64      `json:"target_project_id"`
	Labels        []labLabel `json:"labels"`
	Action        string     `json:"action"`
	// Of a note:
	Note         string `json:"note"`
	NoteableType string `json:"noteable_type"`
	System       bool   `json:"system"`
	CreatedAt    string `json:"created_at"`
}

type labPayload struct {
	Kind string `json:"object_kind"`
	User struct {
		ID       int64  `json:"id"`
		Username string `json:"username"`
	} `json:"user"`
	Project struct {
		Path string `json:"path_with_namespace"`
	} `json:"project"`
	Object  labThing   `json:"object_attributes"`
	Labels  []labLabel `json:"labels"`
	Issue   *labThing  `json:"issue"`
	Merge   *labThing  `json:"merge_request"`
	Changes struct {
		Labels *struct {
			Previous []labLabel `json:"previous"`
			Current  []labLabel `json:"current"`
		} `json:"labels"`
		Description *struct{} `json:"description"`
	} `json:"changes"`
}

func readLab(name string, payload []byte) (event, error) {
	p, err := decode[labPayload](payload)
	if err != nil {
		return event{}, err
	}
	e := event{Name: name, Actors: named(p.User.Username), Thread: Thread{Repository: p.Project.Path}}
	if p.Object.Action != "" {
		e.Name += " " + clip(p.Object.Action, 40)
	}
	o := p.Object
	switch {
	case p.Kind == "issue":
		e.Kind = p.issueKind(&e)
		e.Number, e.Title, e.URL, e.Text, e.At = o.Number, o.Title, o.URL, o.Description, clock(o.UpdatedAt)
		// Old versions do not say who the actor is but by name; then only a new
		// issue is surely theirs.
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
		e.Kind, e.Text, e.Wrote, e.URL, e.At = commented, o.Note, true, o.URL, clock(o.CreatedAt)
		e.Number, e.Title = about.Number, about.Title
		if e.Pull && about.SourceProject == about.TargetProject {
			e.Branch = about.SourceBranch
		}
	}
	return e, nil
}

// issueKind tells a new text from a new label; GitLab calls both an update.
func (p labPayload) issueKind(e *event) kind {
	switch {
	case p.Object.Action == "open":
		return opened
	case p.Object.Action != "update":
		return other
	case p.Changes.Labels != nil:
		for _, l := range p.Changes.Labels.Current {
			if !slices.Contains(p.Changes.Labels.Previous, l) {
				e.Label = l.Title
				return labelled
			}
		}
		return other
	case p.Changes.Description != nil:
		return edited
	}
	return other
}

package gitprovider

import (
	"encoding/json"

	"deckhand/internal/clip"
)

type githubUser struct {
	Login string `json:"login"`
}

type githubLabel struct {
	Name string `json:"name"`
}

type githubIssue struct {
	Number    int           `json:"number"`
	Title     string        `json:"title"`
	Body      string        `json:"body"`
	URL       string        `json:"html_url"`
	User      githubUser    `json:"user"`
	Labels    []githubLabel `json:"labels"`
	UpdatedAt string        `json:"updated_at"`
	// Pull is set if the issue is a pull request.
	Pull *struct{} `json:"pull_request"`
	Head struct {
		Ref  string `json:"ref"`
		Repo struct {
			FullName string `json:"full_name"`
		} `json:"repo"`
	} `json:"head"`
}

type githubComment struct {
	Body        string     `json:"body"`
	Content     string     `json:"content"` // reviews of Gitea
	URL         string     `json:"html_url"`
	User        githubUser `json:"user"`
	CreatedAt   string     `json:"created_at"`
	SubmittedAt string     `json:"submitted_at"`
}

type githubPayload struct {
	Action  string         `json:"action"`
	IsPull  bool           `json:"is_pull"`
	Issue   *githubIssue   `json:"issue"`
	Pull    *githubIssue   `json:"pull_request"`
	Comment *githubComment `json:"comment"`
	Review  *githubComment `json:"review"`
	Label   githubLabel    `json:"label"`
	Changes struct {
		Body *struct{} `json:"body"`
	} `json:"changes"`
	Sender     githubUser `json:"sender"`
	Repository struct {
		FullName string `json:"full_name"`
	} `json:"repository"`
}

// ReadHub parses a webhook request of GitHub. Gitea and Forgejo send nearly the same.
func ReadHub(name string, payload []byte) (HookEvent, error) {
	var p githubPayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return HookEvent{}, err
	}
	e := HookEvent{Name: name, Actors: Present(p.Sender.Login), Thread: Thread{Repository: p.Repository.FullName}}
	if p.Action != "" {
		e.Name += " " + clip.Start(p.Action, 40)
	}
	switch {
	case name == "issues" && p.Issue != nil && p.Issue.Pull == nil:
		e.Kind = githubKinds[p.Action]
		e.about(p.Issue)
		e.Text, e.At = p.Issue.Body, HookTime(p.Issue.UpdatedAt)
		// Others may have changed the text before; changing the title does not make the
		// author responsible for it again.
		e.Wrote = p.Issue.User.Login == p.Sender.Login && (e.Kind != Edited || p.Changes.Body != nil)
		for _, l := range p.Issue.Labels {
			e.Labels = append(e.Labels, l.Name)
		}
		e.Label = p.Label.Name
	case name == "issue_comment" && p.Action == "created" && p.Issue != nil && p.Comment != nil:
		e.about(p.Issue)
		e.Pull = p.IsPull || p.Issue.Pull != nil
		e.said(p.Comment, p.Sender)
	case name == "pull_request_review_comment" && p.Action == "created" && p.Pull != nil && p.Comment != nil:
		e.inPull(p.Pull)
		e.said(p.Comment, p.Sender)
	case githubReviews[name+" "+p.Action] && p.Pull != nil && p.Review != nil:
		e.inPull(p.Pull)
		e.said(p.Review, p.Sender)
		if e.At.IsZero() {
			e.At = HookTime(p.Pull.UpdatedAt)
		}
	}
	return e, nil
}

// githubKinds are the actions on an issue. Gitea does not say which label is new.
var githubKinds = map[string]HookKind{"opened": Opened, "edited": Edited, "labeled": Labelled, "label_updated": Labelled}

// githubReviews are the event names of review texts.
var githubReviews = map[string]bool{
	"pull_request_review submitted": true, "pull_request_comment reviewed": true, "pull_request_approved reviewed": true, "pull_request_rejected reviewed": true,
}

func (e *HookEvent) about(i *githubIssue) { e.Number, e.Title, e.URL = i.Number, i.Title, i.URL }

func (e *HookEvent) inPull(p *githubIssue) {
	e.about(p)
	e.Pull = true
	if p.Head.Repo.FullName == e.Repository {
		e.Branch = p.Head.Ref
	}
}

// said adds a comment. Gitea sends no author with a review; it is the sender.
func (e *HookEvent) said(c *githubComment, by githubUser) {
	e.Kind, e.Text, e.Wrote = Commented, c.Body, c.User.Login == by.Login || c.User.Login == ""
	if e.Text == "" {
		e.Text = c.Content
	}
	if c.URL != "" {
		e.URL = c.URL
	}
	if e.At = HookTime(c.CreatedAt); e.At.IsZero() {
		e.At = HookTime(c.SubmittedAt)
	}
}

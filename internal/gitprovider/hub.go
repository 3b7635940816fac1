package gitprovider

import (
	"encoding/json"

	"deckhand/internal/clip"
)

type hubUser struct {
	Login string `json:"login"`
}

type hubLabel struct {
	Name string `json:"name"`
}

type hubIssue struct {
	Number    int        `json:"number"`
	Title     string     `json:"title"`
	Body      string     `json:"body"`
	URL       string     `json:"html_url"`
	User      hubUser    `json:"user"`
	Labels    []hubLabel `json:"labels"`
	UpdatedAt string     `json:"updated_at"`
	// Pull is set if the issue is a pull request.
	Pull *struct{} `json:"pull_request"`
	Head struct {
		Ref  string `json:"ref"`
		Repo struct {
			FullName string `json:"full_name"`
		} `json:"repo"`
	} `json:"head"`
}

type hubComment struct {
	Body        string  `json:"body"`
	Content     string  `json:"content"` // reviews of Gitea
	URL         string  `json:"html_url"`
	User        hubUser `json:"user"`
	CreatedAt   string  `json:"created_at"`
	SubmittedAt string  `json:"submitted_at"`
}

type hubPayload struct {
	Action  string      `json:"action"`
	IsPull  bool        `json:"is_pull"`
	Issue   *hubIssue   `json:"issue"`
	Pull    *hubIssue   `json:"pull_request"`
	Comment *hubComment `json:"comment"`
	Review  *hubComment `json:"review"`
	Label   hubLabel    `json:"label"`
	Changes struct {
		Body *struct{} `json:"body"`
	} `json:"changes"`
	Sender     hubUser `json:"sender"`
	Repository struct {
		FullName string `json:"full_name"`
	} `json:"repository"`
}

// ReadHub parses a webhook request of GitHub. Gitea and Forgejo send nearly the same.
func ReadHub(name string, payload []byte) (HookEvent, error) {
	var p hubPayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return HookEvent{}, err
	}
	e := HookEvent{Name: name, Actors: Present(p.Sender.Login), Thread: Thread{Repository: p.Repository.FullName}}
	if p.Action != "" {
		e.Name += " " + clip.Start(p.Action, 40)
	}
	switch {
	case name == "issues" && p.Issue != nil && p.Issue.Pull == nil:
		e.Kind = hubKinds[p.Action]
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
	case hubReviews[name+" "+p.Action] && p.Pull != nil && p.Review != nil:
		e.inPull(p.Pull)
		e.said(p.Review, p.Sender)
		if e.At.IsZero() {
			e.At = HookTime(p.Pull.UpdatedAt)
		}
	}
	return e, nil
}

// hubKinds are the actions on an issue. Gitea does not say which label is new.
var hubKinds = map[string]HookKind{"opened": Opened, "edited": Edited, "labeled": Labelled, "label_updated": Labelled}

// hubReviews are the event names of review texts.
var hubReviews = map[string]bool{
	"pull_request_review submitted": true, "pull_request_comment reviewed": true, "pull_request_approved reviewed": true, "pull_request_rejected reviewed": true,
}

func (e *HookEvent) about(i *hubIssue) { e.Number, e.Title, e.URL = i.Number, i.Title, i.URL }

func (e *HookEvent) inPull(p *hubIssue) {
	e.about(p)
	e.Pull = true
	if p.Head.Repo.FullName == e.Repository {
		e.Branch = p.Head.Ref
	}
}

// said adds a comment. Gitea sends no author with a review; it is the sender.
func (e *HookEvent) said(c *hubComment, by hubUser) {
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

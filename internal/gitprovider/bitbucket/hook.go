package bitbucket

import (
	"encoding/json"
	"strconv"
	"time"

	"deckhand/internal/gitprovider"
)

// Webhook payloads of Cloud and Data Center. Data Center has no issues, and neither has labels.

// hookUser is a user. In Cloud, nicknames are not unique and only for display; in Data
// Center, the name is unique.
type hookUser struct {
	AccountID string `json:"account_id"`
	UUID      string `json:"uuid"`
	Name      string `json:"name"`
}

func (u hookUser) names() []string { return gitprovider.Present(u.AccountID, u.UUID, u.Name) }

type hookText struct {
	Raw string `json:"raw"`
}

type hookLinks struct {
	HTML struct {
		Href string `json:"href"`
	} `json:"html"`
}

type hookComment struct {
	Content   hookText  `json:"content"`
	CreatedOn string    `json:"created_on"`
	Links     hookLinks `json:"links"`
	// Data Center only:
	Text        string          `json:"text"`
	CreatedDate json.RawMessage `json:"createdDate"`
}

type hookThing struct {
	ID        int       `json:"id"`
	Title     string    `json:"title"`
	Content   hookText  `json:"content"`
	UpdatedOn string    `json:"updated_on"`
	Links     hookLinks `json:"links"`
	Reporter  hookUser  `json:"reporter"`
	Source    struct {
		Branch struct {
			Name string `json:"name"`
		} `json:"branch"`
		Repository struct {
			FullName string `json:"full_name"`
		} `json:"repository"`
	} `json:"source"`
}

// hookRef is a branch in Data Center.
type hookRef struct {
	Branch     string `json:"displayId"`
	Repository struct {
		Slug    string `json:"slug"`
		Project struct {
			Key string `json:"key"`
		} `json:"project"`
	} `json:"repository"`
}

func (r hookRef) repository() string { return r.Repository.Project.Key + "/" + r.Repository.Slug }

type hookPayload struct {
	Actor   hookUser     `json:"actor"`
	Issue   *hookThing   `json:"issue"`
	Pull    *hookThing   `json:"pullrequest"`
	Comment *hookComment `json:"comment"`
	Changes struct {
		Content *struct{} `json:"content"`
	} `json:"changes"`
	Repository struct {
		FullName string `json:"full_name"`
	} `json:"repository"`
	CenterPull *struct {
		ID    int     `json:"id"`
		Title string  `json:"title"`
		From  hookRef `json:"fromRef"`
		To    hookRef `json:"toRef"`
	} `json:"pullRequest"`
}

func readHook(name string, payload []byte) (gitprovider.HookEvent, error) {
	var p hookPayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return gitprovider.HookEvent{}, err
	}
	if name == "pr:comment:added" {
		return readCenterHook(name, p), nil
	}
	e := gitprovider.HookEvent{Name: name, Actors: p.Actor.names(), Thread: gitprovider.Thread{Repository: p.Repository.FullName}}
	switch {
	case (name == "issue:created" || name == "issue:updated") && p.Issue != nil:
		e.Kind, e.Text, e.At, e.Wrote = gitprovider.Opened, p.Issue.Content.Raw, gitprovider.HookTime(p.Issue.UpdatedOn), true
		if name == "issue:updated" {
			e.Kind = gitprovider.Edited
			e.Wrote = p.Changes.Content != nil && p.Issue.Reporter.AccountID != "" && p.Issue.Reporter.AccountID == p.Actor.AccountID
		}
		e.Number, e.Title, e.URL = p.Issue.ID, p.Issue.Title, p.Issue.Links.HTML.Href
	case name == "issue:comment_created" && p.Issue != nil && p.Comment != nil:
		e.Number, e.Title = p.Issue.ID, p.Issue.Title
		wrote(&e, p.Comment)
	case name == "pullrequest:comment_created" && p.Pull != nil && p.Comment != nil:
		e.Pull, e.Number, e.Title = true, p.Pull.ID, p.Pull.Title
		if p.Pull.Source.Repository.FullName == e.Repository {
			e.Branch = p.Pull.Source.Branch.Name
		}
		wrote(&e, p.Comment)
	}
	return e, nil
}

func readCenterHook(name string, p hookPayload) gitprovider.HookEvent {
	if p.CenterPull == nil || p.Comment == nil {
		return gitprovider.HookEvent{Name: name}
	}
	to, from := p.CenterPull.To, p.CenterPull.From
	e := gitprovider.HookEvent{Name: name, Actors: p.Actor.names(), Thread: gitprovider.Thread{Repository: to.repository(), Pull: true, Number: p.CenterPull.ID}, Title: p.CenterPull.Title}
	if from.repository() == to.repository() {
		e.Branch = from.Branch
	}
	wrote(&e, p.Comment)
	e.Text, e.At = p.Comment.Text, centerTime(p.Comment.CreatedDate)
	return e
}

// wrote adds a comment to the event.
func wrote(e *gitprovider.HookEvent, c *hookComment) {
	e.Kind, e.Wrote, e.Text, e.URL, e.At = gitprovider.Commented, true, c.Content.Raw, c.Links.HTML.Href, gitprovider.HookTime(c.CreatedOn)
}

// centerTime parses milliseconds or, depending on the server's configuration, a formatted
// time.
func centerTime(raw json.RawMessage) time.Time {
	if ms, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return time.UnixMilli(ms)
	}
	text := ""
	_ = json.Unmarshal(raw, &text)
	return gitprovider.HookTime(text)
}

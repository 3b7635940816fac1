package trigger

import (
	"encoding/json"
	"strconv"
	"time"
)

// What Bitbucket sends: Cloud, and Data Center, which has no issues. Neither has
// labels.

// bucketUser is somebody. In Cloud nicknames are not unique, so that they are
// for people only; in Data Center the name is.
type bucketUser struct {
	AccountID string `json:"account_id"`
	UUID      string `json:"uuid"`
	Name      string `json:"name"`
}

func (u bucketUser) names() []string { return named(u.AccountID, u.UUID, u.Name) }

type bucketText struct {
	Raw string `json:"raw"`
}

type bucketLinks struct {
	HTML struct {
		Href string `json:"href"`
	} `json:"html"`
}

type bucketComment struct {
	Content   bucketText  `json:"content"`
	CreatedOn string      `json:"created_on"`
	Links     bucketLinks `json:"links"`
	// Data Center's words:
	Text        string          `json:"text"`
	CreatedDate json.RawMessage `json:"createdDate"`
}

type bucketThing struct {
	ID        int         `json:"id"`
	Title     string      `json:"title"`
	Content   bucketText  `json:"content"`
	UpdatedOn string      `json:"updated_on"`
	Links     bucketLinks `json:"links"`
	Reporter  bucketUser  `json:"reporter"`
	Source    struct {
		Branch struct {
			Name string `json:"name"`
		} `json:"branch"`
		Repository struct {
			FullName string `json:"full_name"`
		} `json:"repository"`
	} `json:"source"`
}

// centerRef is a branch in Data Center.
type centerRef struct {
	Branch     string `json:"displayId"`
	Repository struct {
		Slug    string `json:"slug"`
		Project struct {
			Key string `json:"key"`
		} `json:"project"`
	} `json:"repository"`
}

func (r centerRef) repository() string { return r.Repository.Project.Key + "/" + r.Repository.Slug }

type bucketPayload struct {
	Actor   bucketUser     `json:"actor"`
	Issue   *bucketThing   `json:"issue"`
	Pull    *bucketThing   `json:"pullrequest"`
	Comment *bucketComment `json:"comment"`
	Changes struct {
		Content *struct{} `json:"content"`
	} `json:"changes"`
	Repository struct {
		FullName string `json:"full_name"`
	} `json:"repository"`
	CenterPull *struct {
		ID    int       `json:"id"`
		Title string    `json:"title"`
		From  centerRef `json:"fromRef"`
		To    centerRef `json:"toRef"`
	} `json:"pullRequest"`
}

func readBucket(name string, payload []byte) (event, error) {
	p, err := decode[bucketPayload](payload)
	if err != nil {
		return event{}, err
	}
	if name == "pr:comment:added" {
		return readCenter(name, p), nil
	}
	e := event{Name: name, Actors: p.Actor.names(), Thread: Thread{Repository: p.Repository.FullName}}
	switch {
	case (name == "issue:created" || name == "issue:updated") && p.Issue != nil:
		e.Kind, e.Text, e.At, e.Wrote = opened, p.Issue.Content.Raw, clock(p.Issue.UpdatedOn), true
		if name == "issue:updated" {
			e.Kind = edited
			e.Wrote = p.Changes.Content != nil && p.Issue.Reporter.AccountID != "" && p.Issue.Reporter.AccountID == p.Actor.AccountID
		}
		e.Number, e.Title, e.URL = p.Issue.ID, p.Issue.Title, p.Issue.Links.HTML.Href
	case name == "issue:comment_created" && p.Issue != nil && p.Comment != nil:
		e.Number, e.Title = p.Issue.ID, p.Issue.Title
		e.wrote(p.Comment)
	case name == "pullrequest:comment_created" && p.Pull != nil && p.Comment != nil:
		e.Pull, e.Number, e.Title = true, p.Pull.ID, p.Pull.Title
		if p.Pull.Source.Repository.FullName == e.Repository {
			e.Branch = p.Pull.Source.Branch.Name
		}
		e.wrote(p.Comment)
	}
	return e, nil
}

func readCenter(name string, p bucketPayload) event {
	if p.CenterPull == nil || p.Comment == nil {
		return event{Name: name}
	}
	to, from := p.CenterPull.To, p.CenterPull.From
	e := event{Name: name, Actors: p.Actor.names(), Thread: Thread{Repository: to.repository(), Pull: true, Number: p.CenterPull.ID}, Title: p.CenterPull.Title}
	if from.repository() == to.repository() {
		e.Branch = from.Branch
	}
	e.wrote(p.Comment)
	e.Text, e.At = p.Comment.Text, centerTime(p.Comment.CreatedDate)
	return e
}

func (e *event) wrote(c *bucketComment) {
	e.Kind, e.Wrote, e.Text, e.URL, e.At = commented, true, c.Content.Raw, c.Links.HTML.Href, clock(c.CreatedOn)
}

// centerTime is in milliseconds, or written out if the server was told so.
func centerTime(raw json.RawMessage) time.Time {
	if ms, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return time.UnixMilli(ms)
	}
	text := ""
	_ = json.Unmarshal(raw, &text)
	return clock(text)
}

package gitea

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

func (p *provider) Issue(ctx context.Context, name string, number int) (gitprovider.Issue, error) {
	var found issue
	if err := p.get(ctx, name, call.Path("issues", strconv.Itoa(number)), nil, &found); err != nil {
		return gitprovider.Issue{}, err
	}
	said, err := p.comments(ctx, name, number)
	if err != nil {
		return gitprovider.Issue{}, err
	}
	return gitprovider.Issue{
		Number: found.Number, Title: found.Title, Body: found.Body, URL: found.HTMLURL,
		Author: login(found.User), State: found.State, Comments: texts(said),
	}, nil
}

// Discussion combines comments, reviews, comments on lines, and the statuses of the
// newest commit.
func (p *provider) Discussion(ctx context.Context, name string, number int) (gitprovider.Issue, error) {
	pr, err := p.pull(ctx, name, number)
	if err != nil {
		return gitprovider.Issue{}, err
	}
	said, err := p.comments(ctx, name, number)
	if err != nil {
		return gitprovider.Issue{}, err
	}
	reviews, err := p.reviews(ctx, name, number)
	if err != nil {
		return gitprovider.Issue{}, err
	}
	remarks, err := p.remarks(ctx, name, number, reviews)
	if err != nil {
		return gitprovider.Issue{}, err
	}
	ran, err := p.checks(ctx, name, pr.Head.SHA)
	if err != nil {
		return gitprovider.Issue{}, err
	}
	said = append(said, remarks...)
	return gitprovider.Issue{
		Number: pr.Number, Title: pr.Title, Body: pr.Body, URL: pr.HTMLURL,
		Author: login(pr.User), State: pr.read().State, Comments: texts(said), Checks: ran.read(),
	}, nil
}

// texts returns the texts, oldest first.
func texts(said []comment) []string {
	slices.SortStableFunc(said, func(a, b comment) int { return a.CreatedAt.Compare(b.CreatedAt) })
	var out []string
	for _, c := range said {
		out = append(out, c.read())
	}
	return out
}

func (p *provider) comments(ctx context.Context, name string, number int) ([]comment, error) {
	return all[comment](ctx, p, name, call.Path("issues", strconv.Itoa(number), "comments"), maxListPages)
}

func (p *provider) reviews(ctx context.Context, name string, number int) ([]review, error) {
	return all[review](ctx, p, name, call.Path("pulls", strconv.Itoa(number), "reviews"), maxListPages)
}

// remarks returns reviews and their comments on lines, which are requested for each
// review.
func (p *provider) remarks(ctx context.Context, name string, number int, reviews []review) ([]comment, error) {
	lines := make([][]comment, len(reviews))
	err := sideBySide(ctx, len(reviews), func(ctx context.Context, i int) error {
		if reviews[i].Remarks == 0 {
			return nil
		}
		rest := call.Path("pulls", strconv.Itoa(number), "reviews", strconv.FormatInt(reviews[i].ID, 10), "comments")
		return p.get(ctx, name, rest, nil, &lines[i])
	})
	if err != nil {
		return nil, err
	}
	var out []comment
	for i, r := range reviews {
		if r.State == "PENDING" { // not submitted yet
			continue
		}
		if r.Body != "" {
			out = append(out, comment{Body: r.Body, User: r.User, CreatedAt: r.SubmittedAt})
		}
		for _, c := range lines[i] {
			c.CreatedAt = later(c.CreatedAt, r.SubmittedAt)
			out = append(out, c)
		}
	}
	return out, nil
}

// later returns when a comment became visible: it is written before its review is
// submitted.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// checks returns the checks of a commit; none if the host does not know it.
func (p *provider) checks(ctx context.Context, name, commit string) (checks, error) {
	var out checks
	err := p.get(ctx, name, call.Path("commits", commit, "status"), pageQuery(1, maxPage), &out)
	if gitprovider.ReasonOf(err) == gitprovider.NotFound {
		return checks{}, nil
	}
	return out, err
}

// LabelledBy implements gitprovider.Labeller. The timeline has pages and does
// not say how many; an empty one is behind the last.
func (p *provider) LabelledBy(ctx context.Context, name string, number int, wanted string) (string, error) {
	by := ""
	for page := 1; page <= maxListPages; page++ {
		var found []happening
		if err := p.get(ctx, name, call.Path("issues", strconv.Itoa(number), "timeline"), pageQuery(page, maxPage), &found); err != nil {
			return "", err
		}
		if len(found) == 0 {
			break
		}
		for _, h := range found {
			if h.Type == "label" && h.Body == labelGiven && strings.EqualFold(h.Label.Name, wanted) && h.User != nil {
				by = h.User.Login
			}
		}
	}
	return by, nil
}

// Comment ignores pull: a pull request is an issue here.
func (p *provider) Comment(ctx context.Context, name string, number int, _ bool, text string) error {
	path, err := p.below(name, call.Path("issues", strconv.Itoa(number), "comments"))
	if err != nil {
		return err
	}
	_, err = p.call.Post(ctx, path, struct {
		Body string `json:"body"`
	}{text}, nil)
	return err
}

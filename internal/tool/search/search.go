// Package search is the tool that asks a search engine. It speaks the API of
// Tavily, which others offer too.
package search

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"deckhand/internal/clip"
	"deckhand/internal/outbound"
	"deckhand/internal/tool"
)

//go:embed search.md
var description string

//go:embed schema.json
var schema []byte

// Name is the tool's.
const Name = "web_search"

// Base is where the engine is asked, unless the operator names another place.
const Base = "https://api.tavily.com"

const (
	// usualResults and maxResults are how many pages are listed.
	usualResults, maxResults = 5, 20
	// maxQuery is the longest question that the engine takes.
	maxQuery = 400
	// maxAnswer bounds what the engine sends, maxSnippet what is shown of a page.
	maxAnswer, maxSnippet = 2 << 20, 1000
	timeout               = 30 * time.Second
)

// Tool implements tool.Tool.
type Tool struct {
	client *http.Client
	base   string
	key    func(ctx context.Context, owner string) (string, error)
}

// New makes the tool. The client checks where it connects to; base is "" for the
// usual place; key gives the owner's key for the engine, "" if there is none.
func New(client *http.Client, base string, key func(ctx context.Context, owner string) (string, error)) *Tool {
	if base == "" {
		base = Base
	}
	return &Tool{client, strings.TrimRight(base, "/"), key}
}

// Spec implements tool.Tool.
func (*Tool) Spec() tool.Spec {
	return tool.Spec{Name: Name, Description: strings.TrimSpace(description), Schema: schema, ReadOnly: true}
}

type args struct {
	Query      string `json:"query"`
	MaxResults *int   `json:"max_results"`
}

// Run implements tool.Tool.
func (t *Tool) Run(ctx context.Context, _ tool.Box, call tool.Call) (tool.Result, error) {
	var a args
	if err := call.Into(&a); err != nil {
		return tool.Failf("This call is not valid: %v.", err), nil
	}
	a.Query = strings.TrimSpace(a.Query)
	n := usualResults
	if a.MaxResults != nil {
		n = *a.MaxResults
	}
	switch length := utf8.RuneCountInString(a.Query); {
	case length == 0:
		return tool.Failf("The query is empty. Say what to look for."), nil
	case length > maxQuery:
		return tool.Failf("The query has %d characters, and at most %d are allowed.", length, maxQuery), nil
	case n < 1 || n > maxResults:
		return tool.Failf("max_results is a number from 1 to %d.", maxResults), nil
	}
	key, err := t.key(ctx, call.Owner)
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, context.Cause(ctx)
	case err != nil: // what it says may be about the key
		return tool.Failf("The web cannot be searched: the key of the search engine cannot be read right now."), nil
	case key == "":
		return tool.Failf("The web cannot be searched: no key for the search engine is set. The person can add one in the settings."), nil
	}
	pages, err := t.ask(ctx, key, a.Query, n)
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	if err != nil {
		return tool.Failf("The web could not be searched: %v.", err), nil
	}
	return tool.Result{Text: list(a.Query, pages)}, nil
}

// request and answer are the engine's API, as far as it is used.
type request struct {
	Query      string `json:"query"`
	MaxResults int    `json:"max_results"`
}

type answer struct {
	Results []found `json:"results"`
}

type found struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Content string `json:"content"`
}

// ask asks the engine. Its errors are in words for the model and never hold the key.
func (t *Tool) ask(ctx context.Context, key, query string, n int) ([]found, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	body, err := json.Marshal(request{query, n})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.base+"/search", bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address of the search engine is not valid")
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	reply, err := t.client.Do(r)
	if err != nil {
		return nil, unreached(err)
	}
	defer reply.Body.Close()
	data, err := io.ReadAll(io.LimitReader(reply.Body, maxAnswer+1))
	if err := refused(reply.StatusCode); err != nil {
		return nil, err
	}
	var out answer
	if err != nil || len(data) > maxAnswer || json.Unmarshal(data, &out) != nil {
		return nil, errors.New("the search engine gave an answer that cannot be read")
	}
	return out.Results[:min(len(out.Results), n)], nil
}

// unreached is why the engine could not be asked. A key that cannot be sent is
// in the error of net/http, so only what is known to be harmless is passed on.
func unreached(err error) error {
	var blocked *outbound.BlockedError
	var at *url.Error
	switch {
	case errors.As(err, &blocked):
		return blocked
	case errors.As(err, &at) && at.Timeout():
		return errors.New("the search engine took too long to answer")
	}
	return errors.New("the search engine cannot be reached")
}

// refused puts a status into words, nil if it is good.
func refused(status int) error {
	switch {
	case status == http.StatusOK:
		return nil
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return errors.New("the search engine does not accept the key. The person can set another in the settings")
	case status == http.StatusTooManyRequests:
		return errors.New("the search engine was asked too often. Wait a while before you ask again")
	case status == 432, status == 433, status == http.StatusPaymentRequired: // the first two are Tavily's own
		return errors.New("the plan of the key allows no more searches")
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		return errors.New("the search engine does not understand the query. Ask in other words")
	case status >= 500:
		return fmt.Errorf("the search engine has a problem of its own (status %d). Try again later", status)
	}
	return fmt.Errorf("the search engine answered with status %d", status)
}

// list shows what was found.
func list(query string, pages []found) string {
	if len(pages) == 0 {
		return fmt.Sprintf("Nothing was found for %q. Try other words.", query)
	}
	var b strings.Builder
	for i, p := range pages {
		fmt.Fprintf(&b, "%d. %s\n   %s\n", i+1, words(p.Title, 200), words(p.URL, 2000))
		if s := words(p.Content, maxSnippet); s != "" {
			fmt.Fprintf(&b, "   %s\n", s)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSpace(b.String())
}

// words is a text on one line, and no more than n characters of it.
func words(s string, n int) string {
	return clip.Runes(clip.Line(strings.ToValidUTF8(s, "\uFFFD")), n)
}

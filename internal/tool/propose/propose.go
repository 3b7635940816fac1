// Package propose has the tools with which an agent works where its repository
// lives: it opens pull requests, reads issues and answers them.
//
// They run on the server, with the token that the user stored: the sandbox never
// holds it, so no command in it can do these things. What was opened is recorded
// in the conversation before the model hears of it.
package propose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/risk"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// Deps are what the tools need.
type Deps struct {
	// Open gives a provider as the user's stored token sees it.
	Open func(ctx context.Context, user, provider string) (gitprovider.Provider, error)
	// Sessions are where it is recorded what was opened.
	Sessions *session.Sessions
	// Page is the address at which people find a conversation; nil if there is none.
	Page func(id session.ID) string
}

// Conversation is the conversation that the tools work for.
type Conversation struct {
	// ID is the ID of the conversation that the user sees; "" to record nothing.
	ID session.ID
	// Repository is the one it works on, and Provider where that lives; both may be "".
	Provider, Repository string
	// Stored are the providers that the user has a token for.
	Stored []string
}

// Tools are those that the user's tokens allow, always in the same order. With
// no token there are none.
func (o *Deps) Tools(c Conversation) []tool.Tool {
	out := o.Openers(c)
	if len(c.Stored) > 0 {
		out = append(out, &reader{base{o, c}}, &commenter{base{o, c}})
	}
	return out
}

// Openers are those of the tools that open pull requests.
func (o *Deps) Openers(c Conversation) []tool.Tool {
	var out []tool.Tool
	for _, k := range kinds {
		if slices.ContainsFunc(k.providers(), func(p string) bool { return slices.Contains(c.Stored, p) }) {
			out = append(out, &opener{base{o, c}, k})
		}
	}
	return out
}

// Specs are the specs of the tools that open pull requests, without a conversation.
func Specs() []tool.Spec {
	out := make([]tool.Spec, len(kinds))
	for i, k := range kinds {
		out[i] = k.spec()
	}
	return out
}

// ReadName and CommentName are the tools' that are the same for all providers.
const (
	ReadName    = "read_issue"
	CommentName = "comment_on_issue"
)

// Descriptors are what others know of the tools here.
func Descriptors() []tool.Descriptor {
	var out []tool.Descriptor
	for _, k := range kinds {
		out = append(out, tool.Descriptor{Name: k.name, Rate: risk.Fixed(risk.Medium, "It opens a pull request, which others see.")})
	}
	return append(out,
		tool.Descriptor{Name: ReadName, Rate: risk.ByArguments(rateReading), Display: tool.Display{ReadOnly: true}},
		tool.Descriptor{Name: CommentName, Rate: risk.Fixed(risk.Medium, "It writes where others read.")})
}

// rateReading: the issue of the conversation's own repository needs no name.
func rateReading(a risk.Arguments) (risk.Rating, string) {
	if _, named := a["repo_name"]; named {
		return risk.Medium, "It reads in a repository that it names, with the user's token."
	}
	return risk.Low, "It only reads."
}

// callTime bounds all that one call asks a provider.
const callTime = 60 * time.Second

// base is what the tools of one conversation share.
type base struct {
	deps *Deps
	conv Conversation
}

// own is true for the conversation's own repository.
func (d base) own(provider, repository string) bool {
	return d.conv.Repository != "" && strings.EqualFold(repository, d.conv.Repository) && (provider == d.conv.Provider || d.conv.Provider == "")
}

// wary is why a person should be asked about what is done in this repository.
func (d base) wary(provider, repository string) string {
	if d.own(provider, repository) {
		return ""
	}
	return fmt.Sprintf("It acts in %s, which is not the repository of this conversation.", repository)
}

// ask does something at a provider within callTime. What the provider says no to
// is a result that the model can learn from.
func (d base) ask(ctx context.Context, call tool.Call, provider string, do func(ctx context.Context, p gitprovider.Provider) (tool.Result, error)) (tool.Result, error) {
	within, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	p, err := d.deps.Open(within, call.Owner, provider)
	var r tool.Result
	if err == nil {
		r, err = do(within, p)
	}
	if err == nil {
		return r, nil
	}
	if ctx.Err() != nil {
		return tool.Result{}, context.Cause(ctx)
	}
	if said, ok := errors.AsType[*gitprovider.Error](err); ok {
		return tool.Failf("%s", said.Message), nil
	}
	if within.Err() != nil {
		return tool.Failf("%s", gitprovider.Failure(provider, "", gitprovider.Unavailable, "").Message), nil
	}
	return tool.Result{}, err
}

// repositoryOf reads just the names in arguments, for what must be known before a call is made.
func repositoryOf(args json.RawMessage) (name, provider string) {
	var a struct {
		RepoName string   `json:"repo_name"`
		ID       textOrID `json:"id"`
		Provider string   `json:"provider"`
	}
	_ = json.Unmarshal(args, &a) // unreadable arguments name no repository
	if a.RepoName == "" {
		a.RepoName = string(a.ID)
	}
	return a.RepoName, a.Provider
}

// textOrID is a text that some write as a number.
type textOrID string

// UnmarshalJSON implements json.Unmarshaler.
func (t *textOrID) UnmarshalJSON(b []byte) error {
	var number json.Number
	if len(b) > 0 && b[0] != '"' && json.Unmarshal(b, &number) == nil {
		*t = textOrID(number.String())
		return nil
	}
	return json.Unmarshal(b, (*string)(t))
}

package profile

import (
	"context"
	"net/http"

	"deckhand/internal/agent"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/tool"
	"deckhand/internal/tool/bash"
	"deckhand/internal/tool/browse"
	"deckhand/internal/tool/edit"
	"deckhand/internal/tool/fetch"
	"deckhand/internal/tool/finish"
	"deckhand/internal/tool/glob"
	"deckhand/internal/tool/grep"
	"deckhand/internal/tool/propose"
	"deckhand/internal/tool/search"
	"deckhand/internal/tool/skill"
	tracker "deckhand/internal/tool/tasks"
	"deckhand/internal/tool/think"
)

// The agent profiles.
const (
	codeAct  = "CodeActAgent"
	readOnly = "ReadOnlyAgent"
	browsing = "BrowsingAgent"
)

// tools are those that keep something between calls.
type tools struct {
	browser *browse.Tool
	fetch   tool.Tool
	search  tool.Tool
	skill   tool.Tool
}

func newTools(out sandbox.Outward, client *http.Client, searchURL string, key func(ctx context.Context, owner string) (string, error), skills skill.Read) tools {
	return tools{browser: browse.New(), fetch: fetch.New(fetch.Through(out)), search: search.New(client, searchURL, key), skill: skill.New(skills)}
}

// of are the tools of an agent, in the order the model is told of them: it is
// kept, because it stands at the beginning of every request.
func (t tools) of(name string, st session.State, searches bool, requests []tool.Tool) []tool.Tool {
	var out []tool.Tool
	switch name {
	case readOnly:
		out = []tool.Tool{think.Tool{}, finish.Tool{}, tracker.Tool{}, edit.Viewer{}, grep.Tool{}, glob.Tool{}, t.fetch, t.skill}
	case browsing:
		out = []tool.Tool{think.Tool{}, finish.Tool{}, t.browser, t.fetch}
	default:
		out = []tool.Tool{bash.Tool{}, think.Tool{}, finish.Tool{}, t.browser, tracker.Tool{}, edit.Tool{}, grep.Tool{}, glob.Tool{}, t.fetch, t.skill}
		if st.Created.Depth < agent.MaxDepth {
			out = append(out, agent.Delegate())
		}
	}
	if searches {
		out = append(out, t.search)
	}
	for _, r := range requests {
		if name == codeAct || name == readOnly && r.Spec().ReadOnly {
			out = append(out, r)
		}
	}
	return out
}

// ownTools are the names of the tools that are built in.
func (b *Builder) ownTools() []string {
	names := propose.Names()
	for _, t := range b.tools.of(codeAct, session.State{}, true, nil) {
		names = append(names, t.Spec().Name)
	}
	return names
}

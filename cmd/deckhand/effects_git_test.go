package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"deckhand/api"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
)

const forgeToken = "gta_t0ken0fTheTasker0123456789"

// forgeWithIssue is a host in the shape of Gitea's with one issue for its user.
func forgeWithIssue(t *testing.T) string {
	t.Helper()
	return website(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		const issue = `{"id":1,"number":4,"title":"The wheel squeaks","body":"Oil it.","state":"open","html_url":"http://x/4","user":{"login":"bob"},"repository":{"full_name":"ada/engine"}}`
		switch {
		case !strings.HasSuffix(r.Header.Get("Authorization"), forgeToken):
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"message":"no"}`)
		case r.URL.Path == "/api/v1/user":
			fmt.Fprint(w, `{"id":7,"login":"ada","avatar_url":"http://x/7","full_name":"Ada","email":"ada@example.org"}`)
		case r.URL.Path == "/api/v1/repos/issues/search" && r.URL.Query().Get("type") == "issues":
			fmt.Fprintf(w, `[%s]`, issue)
		case r.URL.Path == "/api/v1/repos/ada/engine/issues/4":
			fmt.Fprint(w, issue)
		default:
			fmt.Fprint(w, `[]`)
		}
	})
}

func giteaAt(host string) string {
	return `"secrets_store":{"provider_tokens":{"gitea":{"token":"` + forgeToken + `","host":"` + host + `"}}}`
}

// The home page offers what the providers suggest, to those who want it.
func effectOfStarters(t *testing.T, l *lab) {
	p := l.person(t, "starter", hello, giteaAt(forgeWithIssue(t)), `"enable_solvability_analysis":false`)
	for _, on := range []bool{true, false, true} {
		p.set(fmt.Sprintf(`"enable_proactive_conversation_starters":%t`, on))
		got, err := p.client.Starters(t.Context())
		if err != nil || got.Enabled != on || (len(got.Tasks) == 1) != on {
			t.Errorf("%t: %+v %v", on, got, err)
		}
	}
	got, err := p.client.SuggestedTasks(t.Context())
	want := api.SuggestedTask{GitProvider: "gitea", TaskType: "OPEN_ISSUE", Repo: "ada/engine", IssueNumber: 4, Title: "The wheel squeaks"}
	if err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%+v %v", got, err)
	}
	if user, err := p.client.GitUser(t.Context()); err != nil || user.Login != "ada" || user.ID != "7" {
		t.Errorf("%+v %v", user, err)
	}
	if len(p.requests()) != 0 {
		t.Error("the model was asked")
	}
	if strings.Contains(l.logs.String(), forgeToken) {
		t.Error("the token is in the server's log")
	}
}

// Open issues carry what the user's own model thinks of them, asked once.
func effectOfSolvability(t *testing.T, l *lab) {
	p := l.person(t, "solver", func(a llmtest.Asked) llmtest.Reply {
		if !strings.Contains(string(a.Body), "The wheel squeaks") || !strings.Contains(string(a.Body), "Oil it.") {
			t.Errorf("the model is not shown the issue: %.300s", a.Body)
		}
		return llmtest.Reply{Text: `{"score":0.9,"sentence":"It says what to do."}`}
	}, giteaAt(forgeWithIssue(t)))
	tasks := func() api.Opt[api.Solvability] {
		t.Helper()
		got, err := p.client.SuggestedTasks(t.Context())
		if err != nil || len(got) != 1 {
			t.Fatalf("%+v %v", got, err)
		}
		return got[0].Solvability
	}
	rated := api.Some(api.Solvability{Score: 0.9, Sentence: "It says what to do."})
	got := tasks()
	for range 20 {
		if !got.Null { // else the model is slow today, and its answer comes with a later one
			break
		}
		got = tasks()
	}
	if got != rated || tasks() != rated || len(p.requests()) != 1 {
		t.Errorf("%+v after %d questions", got, len(p.requests()))
	}
	p.set(`"enable_solvability_analysis":false`)
	if got := tasks(); got.Set {
		t.Errorf("%+v though it is switched off", got)
	}
}

// Where there is a limit on spending, no model is asked outside of conversations.
func TestAskKeepsTheLimit(t *testing.T) {
	t.Parallel()
	asked := &atomic.Int64{}
	l := newLab(t, "models:\n  openai/thrifty: {window: 10000, max_output: 100, input: 1, output: 1}\n", "--user-budget", "5")
	p := l.person(t, "thrifty", func(llmtest.Asked) llmtest.Reply {
		asked.Add(1)
		return llmtest.Reply{Text: `{"score":1,"sentence":"x"}`, Usage: llm.Usage{Input: 1, Output: 1}}
	}, giteaAt(forgeWithIssue(t)))
	got, err := p.client.SuggestedTasks(t.Context())
	if err != nil || len(got) != 1 || !got[0].Solvability.Null || asked.Load() != 0 {
		t.Errorf("%+v %v, %d questions", got, err, asked.Load())
	}
}

//go:build forge

package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/gitprovider/gitea/giteatest"
	"deckhand/internal/llm/llmtest"
)

// All of it on a real forge: a token is stored, the repositories are listed, a
// conversation works on a private one, commits as its author, pushes and opens a
// pull request that leads back to it; a comment there continues it, and the
// answer is posted below. The token is nowhere that anybody could look for it.
func TestForgeFromTokenToAnswer(t *testing.T) {
	forge := giteatest.Open(t)
	ada := forge.User(t, "ada")
	repository := ada.Repository(t, "", "engine", true)
	ada.Write(t, repository, "main", false, "wheel.txt", "square\n")

	at := strings.TrimPrefix(forge.URL, "http://")
	l := newGitLab(t, &gitServer{url: forge.URL})
	p := l.person(t, "ada", wheelwright(repository),
		fmt.Sprintf(`"secrets_store":{"provider_tokens":{"gitea":{"token":%q,"host":%q}}}`, ada.Token, forge.URL),
		`"git_user_name":"Bot","git_user_email":"bot@example.org"`)
	secrets := birds{"the token": ada.Token}

	found, err := p.client.Repositories(t.Context(), url.Values{"selected_provider": {"gitea"}, "page": {"1"}, "per_page": {"10"}})
	if err != nil || len(found) != 1 || found[0].FullName != repository || found[0].IsPublic {
		t.Fatalf("%s lists %+v, %v", at, found, err)
	}
	id, err := p.on(repository, "", "Make the wheel round.")
	if err != nil {
		t.Fatal(err)
	}
	p.follow(id, 0, agentIs("awaiting_user_input"))
	if newest := ada.Commits(t, repository, "round")[0].Commit; newest.Author.Name != "Bot" || newest.Author.Email != "bot@example.org" || newest.Message != "Make it round\n" {
		t.Errorf("the newest commit is %+v", newest)
	}
	c, err := p.client.Conversation(t.Context(), id)
	if err != nil || len(c.PRNumber) != 1 {
		t.Fatalf("%+v, %v\n%s", c, err, describe(p.events(id)))
	}
	number := c.PRNumber[0]
	var pull struct{ Title, Body string }
	ada.Call(t, "GET", fmt.Sprintf("/repos/%s/pulls/%d", repository, number), nil, &pull)
	if !strings.HasSuffix(pull.Title, "A round wheel") || !strings.Contains(pull.Body, l.base+"/conversations/"+id) {
		t.Errorf("the pull request is %+v", pull)
	}

	made, err := p.client.CreateIntegration(t.Context(), api.CreateIntegration{Provider: "gitea"})
	if err != nil {
		t.Fatal(err)
	}
	secrets["the webhook's secret"] = made.Secret
	ada.Webhook(t, repository, made.WebhookURL, made.Secret, "issue_comment", "pull_request_comment", "issues")
	all := p.events(id)
	ada.Comment(t, repository, number, "@deckhand Make it red, too.")
	p.follow(id, all[len(all)-1].ID, agentIs("awaiting_user_input"))
	if said := ada.AwaitComments(t, repository, number, 2)[1].Body; !strings.Contains(said, "It is red now.") || !strings.Contains(said, l.base+"/conversations/"+id) {
		t.Errorf("the answer is %q", said)
	}
	if list, err := p.client.Conversations(t.Context(), url.Values{}); err != nil || len(list.Results) != 1 {
		t.Errorf("there are %d conversations, %v", len(list.Results), err)
	}
	p.nowhere(id, secrets)
	says(t, p.runs(id, `env; cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | sort -u | head -300; cat .git/config`), "url = ")
	p.nowhereSaid(id, secrets)
}

// wheelwright makes the wheel round in a branch of its own, and red when asked.
func wheelwright(repository string) mind {
	work := steps(
		shell(`git switch -qc round && echo round > wheel.txt && git commit -qam 'Make it round' && git push -q origin round; git status -sb`),
		use("create_gitea_pr", map[string]any{"repo_name": repository, "source_branch": "round", "target_branch": "main", "title": "A round wheel", "body": "It rolls."}),
	)
	return func(a llmtest.Asked) llmtest.Reply {
		for _, m := range a.Messages {
			if strings.Contains(m.Text, "Make it red") {
				return llmtest.Reply{Text: "It is red now."}
			}
		}
		return work(a)
	}
}

//go:build forge

package main

import (
	"fmt"
	"net/url"
	"os"
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

// The Changes tab on a real forge, in a browser: commit, push, a pull request with a reviewer, its failed check and its comments, and
// the button that asks the agent to deal with them.
func TestForgeReviewInABrowser(t *testing.T) {
	chromium := findChromium(t)
	needPage(t)
	forge := giteatest.Open(t)
	ada, bob := forge.User(t, "ada"), forge.User(t, "bob")
	repository := ada.Repository(t, "", "engine", true)
	ada.Write(t, repository, "main", false, "wheel.txt", "square\n")
	ada.Invite(t, repository, bob, "write")
	h := newTheatreWith(t, []string{"--egress-private", strings.TrimPrefix(forge.URL, "http://")}, "ada")
	defer h.strike()
	b := *h.box
	b.t, b.key, b.client = t, h.keys["ada"], h.people["ada"]
	(&person{box: &b, lab: h.lab}).set(`"llm_model":"scripted/demo",` + (&gitServer{url: forge.URL}).stores(ada.Token))
	job := map[string]any{"base": h.base, "link": h.link, "keys": h.keys, "chromium": chromium, "pictures": os.Getenv("DECKHAND_PICTURES"),
		"repository": repository, "reviewer": bob.Login}
	act(t, "forge.mjs", job, func(t *testing.T, _ string) {
		newest := ada.Commits(t, repository, "round")[0]
		if newest.Commit.Message != "Make it round\n" && newest.Commit.Message != "Make it round" {
			t.Errorf("pushed: %+v", newest)
		}
		bob.Status(t, repository, newest.SHA, "unit tests", "failure")
		bob.Status(t, repository, newest.SHA, "lint", "success")
		bob.Comment(t, repository, 1, "Please add a test.")
		bob.Review(t, repository, 1, "COMMENT", "Nearly there.", giteatest.Remark{Path: "wheel.txt", Line: 1, Body: "Which radius?"})
		var pull struct {
			Title, Body string
			Reviewers   []struct{ Login string } `json:"requested_reviewers"`
		}
		ada.Call(t, "GET", "/repos/"+repository+"/pulls/1", nil, &pull)
		if pull.Title != "A round wheel" || !strings.Contains(pull.Body, "It rolls.") {
			t.Errorf("the pull request is %+v", pull)
		}
	})
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

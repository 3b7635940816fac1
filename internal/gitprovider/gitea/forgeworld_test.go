//go:build forge

package gitea

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/gitea/giteatest"
	"deckhand/internal/gitprovider/providertest"
)

// forgeWorld puts into the forge what the suite asks for.
func forgeWorld(t *testing.T, forge *giteatest.Forge, ada, grace *giteatest.User) providertest.World {
	engine := ada.Repository(t, "", "engine", false)
	diary := ada.Repository(t, "", "diary", true)
	guild := ada.Organisation(t, "guild")
	minutes := ada.Repository(t, guild, "minutes", true)
	ada.Invite(t, engine, grace, "write")
	ada.Write(t, engine, "main", false, ".openhands/microagents/a.md", "first")
	ada.Write(t, engine, "main", false, ".openhands/microagents/deep/b.md", "second")
	ada.Label(t, engine, "bug")
	ada.Label(t, engine, "Easy")
	commit := ada.Write(t, engine, "fix/login", true, "login.go", "package login\n\nconst a = 1\n")
	ada.Write(t, engine, "fix/logout", true, "logout.go", "package logout\n")
	ada.Write(t, engine, "Feature/LOGIN", true, "feature.go", "package feature\n")
	ada.Write(t, engine, "old", true, "old.go", "package old\n")
	number := ada.Pull(t, engine, "fix/login", "Oil the wheels", "Because.")
	ada.AwaitMergeable(t, engine, number)
	ada.Status(t, engine, commit, "lint", "success")
	ada.Status(t, engine, commit, "test", "failure")
	grace.Review(t, engine, number, "COMMENT", "Some remarks.", giteatest.Remark{Path: "login.go", Body: "Why so?", Line: 3})
	issue := grace.Issue(t, engine, "It squeaks", "It is broken.", ada.Login)
	grace.Comment(t, engine, issue, "Since when?")

	yes := true
	pull := gitprovider.Request{
		Number: number, URL: forge.URL + "/" + engine + "/pulls/" + strconv.Itoa(number), Title: "Oil the wheels", State: "open",
		Source: "fix/login", Target: "main", Mergeable: &yes,
	}
	world := providertest.World{
		User:         forgeUser(t, ada),
		Repositories: forgeRepositories(t, ada, engine, diary, minutes),
		Text:         "ngine", Found: forgeFound(t, ada, "ngine"),
		Branches: forgeBranches(t, ada, engine), Part: "login", With: nil,
		Tasks: []gitprovider.Task{
			{Type: gitprovider.FailingChecks, Repository: engine, Title: "Oil the wheels", Number: number},
			{Type: gitprovider.OpenIssue, Repository: engine, Title: "It squeaks", Number: issue},
		},
		Ref: "main", Folder: ".openhands/microagents",
		Files: []gitprovider.File{
			{Name: "a.md", Path: ".openhands/microagents/a.md"}, {Name: "deep", Path: ".openhands/microagents/deep", Folder: true},
		},
		File: ".openhands/microagents/a.md", Content: "first",
		Proposal: gitprovider.Proposal{
			Repository: engine, Title: "Grease", Body: "As asked.", Source: "fix/logout", Target: "main", Draft: true, Labels: []string{"bug", "easy"},
		},
		Proposed: gitprovider.Request{
			Number: issue + 1, URL: forge.URL + "/" + engine + "/pulls/" + strconv.Itoa(issue+1), Title: "WIP: Grease", State: "open", Draft: true,
			Source: "fix/logout", Target: "main",
		},
		Request: pull,
		Discussion: gitprovider.Issue{
			Number: number, URL: pull.URL, Title: pull.Title, Body: "Because.", Author: ada.Login, State: "open",
			Comments: []string{grace.Login + ": Some remarks.", grace.Login + ": login.go:3: Why so?"},
			Checks:   []string{"test: failure", "lint: success"},
		},
		Issue: gitprovider.Issue{
			Number: issue, URL: forge.URL + "/" + engine + "/issues/" + strconv.Itoa(issue), Title: "It squeaks", Body: "It is broken.",
			Author: grace.Login, State: "open", Comments: []string{grace.Login + ": Since when?"},
		},
	}
	for _, r := range world.Repositories {
		if r.Name == engine {
			world.Repository = r
			world.Repository.Owner = "" // told in lists only
		}
	}
	for _, b := range world.Branches {
		if strings.Contains(strings.ToLower(b.Name), "login") {
			world.With = append(world.With, b.Name)
		}
	}
	return world
}

func forgeUser(t *testing.T, u *giteatest.User) gitprovider.User {
	var me struct {
		AvatarURL string `json:"avatar_url"`
	}
	u.Call(t, "GET", "/user", nil, &me)
	return gitprovider.User{ID: strconv.FormatInt(u.ID, 10), Login: u.Login, AvatarURL: me.AvatarURL, Name: "ADA", Email: u.Email}
}

// forgeSearch is what the forge says, read without the adapter.
func forgeSearch(t *testing.T, u *giteatest.User, query string) []map[string]any {
	var found struct {
		Data []map[string]any `json:"data"`
	}
	u.Call(t, "GET", "/repos/search?limit=50&"+query, nil, &found)
	return found.Data
}

// forgeRepositories are those of a user, in the forge's order. They must be the ones named.
func forgeRepositories(t *testing.T, u *giteatest.User, want ...string) []gitprovider.Repository {
	var out []gitprovider.Repository
	var names []string
	for _, r := range forgeSearch(t, u, fmt.Sprintf("uid=%d&sort=updated&order=desc", u.ID)) {
		name, none := r["full_name"].(string), 0
		at, err := time.Parse(time.RFC3339, r["updated_at"].(string))
		if err != nil {
			t.Fatal(err)
		}
		one := gitprovider.Repository{
			ID: fmt.Sprint(r["id"]), Name: name, Public: !r["private"].(bool), Stars: &none, PushedAt: at, MainBranch: "main",
		}
		if strings.HasPrefix(name, u.Login+"/") {
			one.Owner = "user"
		}
		out, names = append(out, one), append(names, name)
	}
	slices.Sort(names)
	if slices.Sort(want); !slices.Equal(names, want) {
		t.Fatalf("the forge lists %q, want %q", names, want)
	}
	return out
}

func forgeFound(t *testing.T, u *giteatest.User, text string) (names []string) {
	for _, r := range forgeSearch(t, u, "q="+url.QueryEscape(text)) {
		names = append(names, r["full_name"].(string))
	}
	return names
}

func forgeBranches(t *testing.T, u *giteatest.User, repository string) (out []gitprovider.Branch) {
	var found []struct {
		Name   string
		Commit struct {
			ID        string
			Timestamp time.Time
		}
	}
	u.Call(t, "GET", "/repos/"+repository+"/branches?limit=50", nil, &found)
	for _, b := range found {
		out = append(out, gitprovider.Branch{Name: b.Name, Commit: b.Commit.ID, PushedAt: b.Commit.Timestamp})
	}
	return out
}

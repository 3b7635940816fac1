package trigger

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// payload is a delivery of a recorded shape, with its holes filled.
func payload(t testing.TB, name string, fill ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.NewReplacer(append(fill, "NOW", "2026-03-01T12:00:00Z", "TEXT", "@deckhand mend it", "ACTOR", "ada", "HOST", "https://git.example.org")...).Replace(string(b)))
}

func with(name, value string) http.Header {
	h := http.Header{}
	h.Set(name, value)
	return h
}

// parser reads deliveries of a provider.
func parser(t testing.TB, provider string) func(http.Header, []byte) (event, error) {
	t.Helper()
	r, ok := readerOf(provider)
	if !ok {
		t.Fatal("nothing can be started from " + provider)
	}
	return r.parse
}

// eventHeaders are the names of the headers that name an event.
var eventHeaders = map[string]string{"github": "X-GitHub-Event", "gitlab": "X-Gitlab-Event", "bitbucket": "X-Event-Key", "gitea": "X-Gitea-Event", "forgejo": "X-Forgejo-Event"}

func TestParse(t *testing.T) {
	const site = "https://git.example.org/"
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	issue, pull := Thread{Repository: "octo/app", Number: 7}, Thread{Repository: "octo/app", Pull: true, Number: 12}
	labIssue, labPull := Thread{Repository: "octo/sub/app", Number: 7}, Thread{Repository: "octo/sub/app", Pull: true, Number: 12}
	const wheel, mend, call = "The wheel came off", "Mend the wheel", "@deckhand mend it"
	hubIssue := event{Thread: issue, Title: wheel, URL: site + "octo/app/issues/7", Actors: []string{"ada"}, At: noon}
	said := func(t Thread, title, url, branch string, actors ...string) event {
		return event{Kind: commented, Thread: t, Title: title, URL: site + url, Text: call, Wrote: true, Branch: branch, Actors: append(actors, "ada")[:len(actors)+1], At: noon}
	}
	opened1, labelled1 := hubIssue, hubIssue
	opened1.Kind, opened1.Text, opened1.Wrote = opened, call, true
	labelled1.Kind, labelled1.Text, labelled1.Labels, labelled1.Label = labelled, "It rolls away.", []string{"deckhand"}, "deckhand"
	labelled2 := labelled1
	labelled2.Label = ""
	lab1, lab2 := opened1, labelled1
	lab1.Thread, lab1.URL, lab2.Thread, lab2.URL = labIssue, site+"octo/sub/app/-/issues/7", labIssue, site+"octo/sub/app/-/issues/7"
	comment := said(issue, wheel, "octo/app/issues/7#issuecomment-45", "")
	pullComment := said(pull, mend, "octo/app/issues/7#issuecomment-45", "")
	reviewComment := said(pull, mend, "octo/app/issues/7#issuecomment-45", "mend")
	bucket := func(e event) event { e.Actors = []string{"ada", "{145a94da-ada}"}; return e }
	center := event{Kind: commented, Thread: Thread{Repository: "OCTO/app", Pull: true, Number: 12}, Title: mend, Text: call, Wrote: true, Branch: "mend", Actors: []string{"ada"}, At: time.UnixMilli(1500000000000)}
	for name, test := range map[string]struct {
		event string
		want  event
	}{
		"github_issue_opened":      {"issues", opened1},
		"github_issue_labeled":     {"issues", labelled1},
		"github_issue_comment":     {"issue_comment", comment},
		"github_pull_comment":      {"issue_comment", pullComment},
		"github_review_comment":    {"pull_request_review_comment", reviewComment},
		"github_review":            {"pull_request_review", said(pull, mend, "octo/app/pull/12#r80", "")}, // from a fork
		"gitea_issue_opened":       {"issues", opened1},
		"gitea_issue_labeled":      {"issues", labelled2},
		"gitea_issue_comment":      {"issue_comment", comment},
		"gitea_pull_comment":       {"issue_comment", pullComment},
		"gitea_review":             {"pull_request_comment", said(pull, mend, "octo/app/pull/12", "mend")},
		"gitlab_issue_opened":      {"Issue Hook", lab1},
		"gitlab_issue_labeled":     {"Issue Hook", lab2},
		"gitlab_issue_comment":     {"Note Hook", said(labIssue, wheel, "octo/sub/app/-/issues/7#note_45", "")},
		"gitlab_pull_comment":      {"Note Hook", said(labPull, mend, "octo/sub/app/-/issues/7#note_45", "mend")},
		"bitbucket_issue_opened":   {"issue:created", bucket(opened1)},
		"bitbucket_issue_comment":  {"issue:comment_created", bucket(said(issue, wheel, "octo/app/issues/7#comment-45", ""))},
		"bitbucket_pull_comment":   {"pullrequest:comment_created", bucket(said(pull, mend, "octo/app/issues/7#comment-45", "mend"))},
		"bitbucket_center_comment": {"pr:comment:added", center},
	} {
		t.Run(name, func(t *testing.T) {
			provider, _, _ := strings.Cut(name, "_")
			got, err := parser(t, provider)(with(eventHeaders[provider], test.event), payload(t, name))
			if err != nil || !strings.HasPrefix(got.Name, test.event) {
				t.Fatal(got.Name, err)
			}
			if got.Name = ""; !reflect.DeepEqual(got, test.want) {
				t.Errorf("\ngot  %+v\nwant %+v", got, test.want)
			}
			if provider == "gitea" { // Forgejo sends the same under either name
				for _, h := range []string{"X-Forgejo-Event", "X-Gitea-Event"} {
					if again, err := parser(t, "forgejo")(with(h, test.event), payload(t, name)); err != nil || again.Kind != test.want.Kind {
						t.Errorf("%s: %+v %v", h, again, err)
					}
				}
			}
		})
	}
}

// Others can change the text of an issue and give it labels. Its author says
// what stands there by writing it, not by changing the title later.
func TestParseEdited(t *testing.T) {
	in := Integration{Mention: "@deckhand", Label: "deckhand", AllowedUsers: []string{"ada"}}
	label := []string{`"labels": []`, `"labels": [{"name": "deckhand", "title": "deckhand"}]`}
	for provider, test := range map[string]struct {
		event, file string
		action      [2]string
		text, title string // what was changed
	}{
		"github":    {"issues", "github_issue_opened", [2]string{`"opened"`, `"edited"`}, `"body": {"from": "x"}`, `"title": {"from": "x"}`},
		"gitea":     {"issues", "gitea_issue_opened", [2]string{`"opened"`, `"edited"`}, `"body": {"from": "x"}`, `"title": {"from": "x"}, "added_labels": null`},
		"gitlab":    {"Issue Hook", "gitlab_issue_opened", [2]string{`"action": "open"`, `"action": "update"`}, `"description": {"previous": "x"}`, `"title": {"previous": "x"}`},
		"bitbucket": {"issue:updated", "bitbucket_issue_opened", [2]string{}, `"content": {"old": "x"}`, `"title": {"old": "x"}`},
	} {
		said := func(changes string, fill ...string) string {
			if test.action[0] != "" {
				fill = append(fill, test.action[0], test.action[1])
			}
			body := payload(t, test.file, fill...)
			body = append([]byte(`{"changes": {`+changes+`},`), bytes.TrimPrefix(bytes.TrimSpace(body), []byte("{"))...)
			e, err := parser(t, provider)(with(eventHeaders[provider], test.event), body)
			if err != nil {
				t.Errorf("%s: %v", provider, err)
			}
			return decide(in, e, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		}
		if reason := said(test.text); reason != "" {
			t.Errorf("%s: a new text: %s", provider, reason)
		}
		if said(test.title) == "" {
			t.Errorf("%s: a new title made the text the author's", provider)
		}
		if said(test.title, append(label, "TEXT", "nothing")...) == "" || said(test.text, append(label, "TEXT", "nothing")...) == "" {
			t.Errorf("%s: a label counts that another user may have given", provider)
		}
	}
}

// What could be taken for a wish and is none.
func TestParseNothing(t *testing.T) {
	replace := func(name string, pairs ...string) []byte { return payload(t, name, pairs...) }
	for name, test := range map[string]struct {
		provider, event string
		body            []byte
	}{
		"push":                     {"github", "push", []byte(`{"ref":"refs/heads/main"}`)},
		"ping":                     {"github", "ping", []byte(`{"zen":"x"}`)},
		"edited comment":           {"github", "issue_comment", replace("github_issue_comment", `"created",`, `"edited",`)},
		"deleted comment":          {"gitea", "issue_comment", replace("gitea_issue_comment", `"created",`, `"deleted",`)},
		"closed issue":             {"github", "issues", replace("github_issue_opened", `"opened"`, `"closed"`)},
		"system note":              {"gitlab", "Note Hook", replace("gitlab_issue_comment", `"system": false`, `"system": true`)},
		"edited note":              {"gitlab", "Note Hook", replace("gitlab_issue_comment", `"action": "create"`, `"action": "update"`)},
		"note on a commit":         {"gitlab", "Note Hook", replace("gitlab_issue_comment", `"Issue"`, `"Commit"`)},
		"closed at GitLab":         {"gitlab", "Issue Hook", replace("gitlab_issue_opened", `"action": "open"`, `"action": "close"`)},
		"another change at GitLab": {"gitlab", "Issue Hook", replace("gitlab_issue_opened", `"action": "open"`, `"action": "update"`)},
		"deleted at Bitbucket":     {"bitbucket", "pullrequest:comment_deleted", replace("bitbucket_pull_comment")},
		"ping of Data Center":      {"bitbucket", "diagnostics:ping", []byte(`{"test":true}`)},
		"an empty object":          {"bitbucket", "pr:comment:added", []byte(`{}`)},
	} {
		if e, err := parser(t, test.provider)(with(eventHeaders[test.provider], test.event), test.body); err != nil || e.Kind != other {
			t.Errorf("%s: %+v %v", name, e, err)
		}
	}
	for name, test := range map[string]struct {
		provider, event string
		body            []byte
	}{
		"no JSON":            {"github", "issues", []byte(`{"action":`)},
		"another type":       {"github", "issues", []byte(`{"issue":3}`)},
		"no number":          {"github", "issue_comment", replace("github_issue_comment", `"number": 7`, `"number": 0`)},
		"nobody":             {"github", "issue_comment", replace("github_issue_comment", `"ACTOR"`, `""`)},
		"a hostile name":     {"github", "issue_comment", replace("github_issue_comment", `"octo/app"`, `"../../etc"`)},
		"an option as name":  {"gitlab", "Note Hook", replace("gitlab_issue_comment", `"octo/sub/app"`, `"--upload-pack=x/y"`)},
		"a huge number":      {"gitea", "issue_comment", replace("gitea_issue_comment", `"number": 7`, `"number": 99999999999999999999`)},
		"an unreadable form": {"github", "issues", []byte(`payload=%zz`)},
	} {
		h := with(eventHeaders[test.provider], test.event)
		if strings.HasPrefix(string(test.body), "payload") {
			h.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		if e, err := parser(t, test.provider)(h, test.body); err == nil || e.Kind != other || e.Text != "" {
			t.Errorf("%s: %+v %v", name, e, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	names := []string{"issues", "issue_comment", "pull_request_review", "pull_request_comment", "pull_request_review_comment", "Note Hook", "issue:created", "issue:updated",
		"issue:comment_created", "pullrequest:comment_created", "pr:comment:added"}
	for i, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, byte(i), byte(i))
	}
	f.Fuzz(func(t *testing.T, body []byte, provider, name byte) {
		p := Providers()[int(provider)%len(Providers())]
		e, err := parser(t, p)(with(eventHeaders[p], names[int(name)%len(names)]), body)
		if (err != nil || e.Kind == other) != (e.Number == 0) || e.Kind != other && (len(e.Actors) == 0 || e.Repository == "") {
			t.Errorf("%+v %v", e, err)
		}
		decide(Integration{Mention: "@deckhand", Label: "deckhand", AllowedUsers: []string{"ada"}}, e, time.Now())
	})
}

package propose_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/gitprovider"
	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
	"deckhand/internal/tool"
	"deckhand/internal/tool/propose"
	"deckhand/internal/tool/tooltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// forge is a place where repositories live. It keeps one open request for each
// pair of branches, as the real ones do, unless it is lax.
type forge struct {
	gitprovider.Provider
	asked    []string
	open     []gitprovider.Proposal
	lax      bool
	fail     error
	comments []string
}

func (f *forge) Propose(_ context.Context, p gitprovider.Proposal) (gitprovider.Request, error) {
	f.asked = append(f.asked, "propose")
	if f.fail != nil {
		return gitprovider.Request{}, f.fail
	}
	if _, err := f.Proposed(context.Background(), p.Repository, p.Source, p.Target); err == nil && !f.lax {
		return gitprovider.Request{}, gitprovider.Failure("github", "github.com", gitprovider.Refused, "A pull request already exists.")
	}
	f.open = append(f.open, p)
	return f.request(len(f.open)), nil
}

func (f *forge) request(n int) gitprovider.Request {
	p := f.open[n-1]
	return gitprovider.Request{Number: n, Title: p.Title, Draft: p.Draft, State: "open", Source: p.Source, Target: p.Target, URL: fmt.Sprintf("https://forge.example/%s/pull/%d", p.Repository, n)}
}

func (f *forge) Proposed(_ context.Context, repository, source, target string) (gitprovider.Request, error) {
	for i, p := range f.open {
		if p.Repository == repository && p.Source == source && p.Target == target {
			return f.request(i + 1), nil
		}
	}
	return gitprovider.Request{}, gitprovider.Failure("github", "github.com", gitprovider.NotFound, "")
}

func (f *forge) Request(_ context.Context, _ string, n int) (gitprovider.Request, error) {
	no := false
	return gitprovider.Request{Number: n, State: "merged", Source: "fix", Target: "main", Draft: true, Mergeable: &no}, f.fail
}

func (f *forge) Discussion(_ context.Context, _ string, n int) (gitprovider.Issue, error) {
	return gitprovider.Issue{Number: n, Title: "Change it", Body: "Because.", URL: "https://forge.example/pull", Author: "ada", State: "closed",
		Comments: []string{"bob: main.go:7: Why this?"}, Checks: []string{"lint: failed", "test: passed"}}, f.fail
}

func (f *forge) Issue(_ context.Context, repository string, n int) (gitprovider.Issue, error) {
	var comments []string
	for i := range 120 {
		comments = append(comments, fmt.Sprintf("bob: number %d", i+1))
	}
	return gitprovider.Issue{Number: n, Title: "It is broken in " + repository, State: "open", Author: "ada", Body: strings.Repeat("x", 9000), Comments: comments}, f.fail
}

func (f *forge) Comment(_ context.Context, repository string, n int, pull bool, text string) error {
	f.comments = append(f.comments, fmt.Sprintf("%s %d %t %s", repository, n, pull, text))
	return f.fail
}

// bench is Deps with one conversation.
type bench struct {
	*testing.T
	forge    *forge
	sessions *session.Sessions
	deps     *propose.Deps
	opened   []string // "user provider" of each call
}

const conv = session.ID("a-conversation")

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, forge: &forge{}, sessions: session.New(memlog.New())}
	if _, err := b.sessions.Create(t.Context(), conv, session.Created{Owner: "ada", Repository: "octo/app", Provider: "github"}, nil); err != nil {
		t.Fatal(err)
	}
	b.deps = &propose.Deps{Sessions: b.sessions, Page: func(id session.ID) string { return "https://deckhand.example/conversations/" + string(id) },
		Open: func(_ context.Context, user, provider string) (gitprovider.Provider, error) {
			b.opened = append(b.opened, user+" "+provider)
			return b.forge, nil
		}}
	return b
}

func (b *bench) conversation(provider string, stored ...string) propose.Conversation {
	return propose.Conversation{ID: conv, Provider: provider, Repository: "octo/app", Stored: stored}
}

// use calls a tool by its name.
func (b *bench) use(c propose.Conversation, name, args string, again bool) tool.Result {
	b.Helper()
	for _, t := range b.deps.Tools(c) {
		if t.Spec().Name == name {
			r, err := t.Run(b.Context(), nil, tool.Call{ID: "1-x", Args: json.RawMessage(args), Session: string(conv), Owner: "ada", Again: again})
			if err != nil {
				b.Fatal(err)
			}
			return r
		}
	}
	b.Fatalf("there is no tool %s", name)
	return tool.Result{}
}

func (b *bench) recorded() []session.RequestOpened {
	b.Helper()
	st, err := b.sessions.Load(b.Context(), conv)
	if err != nil {
		b.Fatal(err)
	}
	return st.Requests
}

func names(tools []tool.Tool) string {
	var out []string
	for _, t := range tools {
		out = append(out, t.Spec().Name)
	}
	return strings.Join(out, " ")
}

// A user is offered what their tokens are good for, and nothing without any.
func TestOffer(t *testing.T) {
	b := newBench(t)
	for stored, want := range map[string]string{
		"": "", "github": "create_pr read_issue comment_on_issue", "gitlab": "create_mr read_issue comment_on_issue", "bitbucket": "create_bitbucket_pr read_issue comment_on_issue",
		"gitea": "create_gitea_pr read_issue comment_on_issue", "forgejo": "create_gitea_pr read_issue comment_on_issue", "enterprise_sso": "create_pr read_issue comment_on_issue",
		"gitea gitlab github": "create_pr create_mr create_gitea_pr read_issue comment_on_issue",
	} {
		if got := names(b.deps.Tools(b.conversation("", strings.Fields(stored)...))); got != want {
			t.Errorf("%q: %q, want %q", stored, got, want)
		}
	}
	all := strings.Fields(names(b.deps.Tools(b.conversation("", "github", "gitlab", "bitbucket", "gitea"))))
	slices.Sort(all)
	var known []string
	for _, d := range propose.Descriptors() {
		known = append(known, d.Name)
	}
	slices.Sort(known)
	if !slices.Equal(all, known) {
		t.Errorf("%q is not %q", all, known)
	}
}

func TestSpecs(t *testing.T) {
	b := newBench(t)
	for _, tl := range b.deps.Tools(b.conversation("github", "github", "gitlab", "bitbucket", "gitea")) {
		s := tl.Spec()
		if strings.Contains(s.Description, "{{") {
			t.Error(s.Description)
		}
		const branches = `"source_branch":"a","target_branch":"b","title":"t"`
		good, bad := []string{`{"number":1,"kind":"pull_request","repo_name":"a/b","provider":"gitlab"}`}, []string{`{}`, `{"number":0}`, `{"number":1,"kind":"x"}`, `{"number":1,"provider":"x"}`}
		switch s.Name {
		case "create_pr", "create_gitea_pr":
			good, bad = []string{`{"repo_name":"a/b",` + branches + `}`, `{"repo_name":"a/b",` + branches + `,"body":null,"draft":false,"labels":["x"]}`}, []string{`{` + branches + `}`, `{"repo_name":"a/b",` + branches + `,"labels":"x"}`}
		case "create_mr":
			good, bad = []string{`{"id":12,` + branches + `}`, `{"id":"a/b",` + branches + `,"description":"x","labels":null}`}, []string{`{"repo_name":"a/b",` + branches + `}`}
		case "create_bitbucket_pr":
			good, bad = []string{`{"repo_name":"a/b",` + branches + `,"description":null}`}, []string{`{"repo_name":"a/b",` + branches + `,"draft":true}`}
		case "comment_on_issue":
			good = []string{`{"number":1,"text":"x"}`}
		}
		tooltest.Spec(t, s, good, bad)
		if s.ReadOnly != (s.Name == "read_issue") || s.Harmless {
			t.Errorf("%s: %+v", s.Name, s)
		}
	}
}

// Each tool in its own words says the same to the provider, and the
// conversation remembers what came of it.
func TestOpen(t *testing.T) {
	const link = "Made in [this conversation](https://deckhand.example/conversations/a-conversation)."
	for name, c := range map[string]struct {
		provider, args string
		want           gitprovider.Proposal
		says           string
	}{
		"create_pr": {"github", `{"repo_name":"octo/app","source_branch":"fix","target_branch":"main","title":" Fix it ","body":"Why.","labels":["bug"]}`,
			gitprovider.Proposal{Title: "Fix it", Body: "Why.\n\n" + link, Draft: true, Labels: []string{"bug"}}, "Pull request #1 of octo/app was opened: https://forge.example/octo/app/pull/1\nIt is a draft."},
		"create_pr ": {"enterprise_sso", `{"repo_name":"octo/app","source_branch":"fix","target_branch":"main","title":"Fix it","draft":false,"labels":null}`,
			gitprovider.Proposal{Title: "Fix it", Body: link}, "Pull request #1 of octo/app was opened: https://forge.example/octo/app/pull/1"},
		"create_mr": {"gitlab", `{"id":"octo/app","source_branch":"fix","target_branch":"main","title":"Draft: Fix it","description":"Why."}`,
			gitprovider.Proposal{Title: "Draft: Fix it", Body: "Why.\n\n" + link}, "Merge request !1 of octo/app was opened: https://forge.example/octo/app/pull/1"},
		"create_bitbucket_pr": {"bitbucket", `{"repo_name":"octo/app","source_branch":"fix","target_branch":"main","title":"Fix it","description":null}`,
			gitprovider.Proposal{Title: "Fix it", Body: link}, "Pull request #1 of octo/app was opened: https://forge.example/octo/app/pull/1"},
		"create_gitea_pr": {"forgejo", `{"repo_name":"octo/app","source_branch":"fix","target_branch":"main","title":"Fix it","draft":false}`,
			gitprovider.Proposal{Title: "Fix it", Body: link}, "Pull request #1 of octo/app was opened: https://forge.example/octo/app/pull/1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			c.want.Repository, c.want.Source, c.want.Target = "octo/app", "fix", "main"
			r := b.use(b.conversation(c.provider, c.provider, "gitea"), strings.TrimSpace(name), c.args, false)
			if r.Failed || r.Text != c.says || b.opened[0] != "ada "+c.provider {
				t.Errorf("%+v by %q", r, b.opened)
			}
			if got := b.forge.open; len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			want := session.RequestOpened{Provider: c.provider, Repository: "octo/app", Number: 1, URL: "https://forge.example/octo/app/pull/1", Title: c.want.Title, Source: "fix", Target: "main"}
			if got := b.recorded(); len(got) != 1 || got[0] != want {
				t.Errorf("%+v", got)
			}
		})
	}
}

const fixIt = `{"repo_name":"octo/app","source_branch":"fix","target_branch":"main","title":"Fix it"}`

// What is open already is said and recorded, once: the model asked twice, or a
// server died between the provider's answer and its own word.
func TestOpenTwice(t *testing.T) {
	b := newBench(t)
	c := b.conversation("github", "github")
	b.use(c, "create_pr", fixIt, false)
	r := b.use(c, "create_pr", fixIt, false)
	if r.Failed || !strings.Contains(r.Text, "Pull request #1 of octo/app from fix to main is open already: https://forge.example/octo/app/pull/1") {
		t.Errorf("%+v", r)
	}
	if got := b.recorded(); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	lost := newBench(t)
	lost.forge.lax = true // a provider that would open a second one
	lost.forge.open = []gitprovider.Proposal{{Repository: "octo/app", Source: "fix", Target: "main", Title: "Fix it"}}
	r = lost.use(c, "create_pr", fixIt, true)
	if got := lost.recorded(); r.Failed || len(got) != 1 || got[0].Number != 1 || len(lost.forge.open) != 1 || len(lost.forge.asked) != 0 {
		t.Errorf("%+v %+v %q", r, got, lost.forge.asked)
	}
}

// Without a conversation nothing is recorded and no link is added; with one that
// is gone, the request is still told of.
func TestNowhereToRecord(t *testing.T) {
	b := newBench(t)
	if r := b.use(propose.Conversation{Stored: []string{"github"}}, "create_pr", fixIt, false); r.Failed || b.forge.open[0].Body != "" || len(b.recorded()) != 0 {
		t.Errorf("%+v %+v", r, b.forge.open)
	}
	if _, err := b.sessions.Update(t.Context(), conv, session.State.Delete); err != nil {
		t.Fatal(err)
	}
	if r := b.use(b.conversation("github", "github"), "create_pr", strings.Replace(fixIt, "fix", "other", 1), false); r.Failed {
		t.Errorf("%+v", r)
	}
}

// What cannot be done is said in words that help, and no useless request is made.
func TestOpenRefuses(t *testing.T) {
	for args, want := range map[string]string{
		`{"repo_name":"../x","source_branch":"a","target_branch":"b","title":"t"}`:                                           "not the name of a repository",
		`{"repo_name":"https://h/a/b","source_branch":"a","target_branch":"b","title":"t"}`:                                  "not the name of a repository",
		`{"repo_name":"a/b","source_branch":"--upload-pack=x","target_branch":"b","title":"t"}`:                              "source_branch",
		`{"repo_name":"a/b","source_branch":"a","target_branch":"b c","title":"t"}`:                                          "target_branch",
		`{"repo_name":"a/b","source_branch":"a","target_branch":"a","title":"t"}`:                                            "are the same",
		`{"repo_name":"a/b","source_branch":"a","target_branch":"b","title":"  "}`:                                           "title is one line",
		`{"repo_name":"a/b","source_branch":"a","target_branch":"b","title":"x\ny"}`:                                         "title is one line",
		`{"repo_name":"a/b","source_branch":"a","target_branch":"b","title":"` + strings.Repeat("x", 300) + `"}`:             "title is one line",
		`{"repo_name":"a/b","source_branch":"a","target_branch":"b","title":"t","body":"` + strings.Repeat("x", 61e3) + `"}`: "more briefly",
		`{"repo_name":7}`: "must be a string",
		`nonsense`:        "not valid JSON",
	} {
		b := newBench(t)
		if r := b.use(b.conversation("github", "github"), "create_pr", args, false); !r.Failed || !strings.Contains(r.Text, want) || len(b.opened) > 0 {
			t.Errorf("%.80s: %+v", args, r)
		}
	}
	b := newBench(t)
	b.forge.fail = gitprovider.Failure("github", "github.com", gitprovider.Scope, "")
	if r := b.use(b.conversation("github", "github"), "create_pr", fixIt, false); !r.Failed || !strings.Contains(r.Text, "not allowed to do this") || len(b.recorded()) > 0 {
		t.Errorf("%+v", r)
	}
	b.forge.fail = gitprovider.Failure("github", "github.com", gitprovider.Refused, "No commits between main and fix.")
	if r := b.use(b.conversation("github", "github"), "create_pr", fixIt, false); !r.Failed || !strings.Contains(r.Text, "No commits between main and fix.") {
		t.Errorf("%+v", r)
	}
	b.forge.fail = gitprovider.Failure("github", "github.com", gitprovider.NotFound, "")
	if r := b.use(b.conversation("github", "github"), "create_pr", fixIt, false); !r.Failed || !strings.Contains(r.Text, "the branch fix was not pushed, or there is no branch main") {
		t.Errorf("%+v", r)
	}
	if r := b.use(b.conversation("gitlab", "github", "gitlab"), "create_pr", fixIt, false); !r.Failed || r.Text != "octo/app is on GitLab: use create_mr." {
		t.Errorf("%+v", r)
	}
}

// What is not the provider's word is not the model's business.
func TestTrouble(t *testing.T) {
	b := newBench(t)
	b.deps.Open = func(context.Context, string, string) (gitprovider.Provider, error) {
		return nil, errors.New("the store is broken")
	}
	one := b.deps.Tools(b.conversation("github", "github"))[0]
	call := tool.Call{Args: json.RawMessage(fixIt), Owner: "ada"}
	if r, err := one.Run(t.Context(), nil, call); err == nil || r.Text != "" {
		t.Errorf("%+v %v", r, err)
	}
	left := errors.New("left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(left)
	if _, err := one.Run(ctx, nil, call); !errors.Is(err, left) {
		t.Error(err)
	}
}

// Actions outside of the conversation's repository need approval.
func TestWary(t *testing.T) {
	b := newBench(t)
	wary := func(c propose.Conversation, name, args string) bool {
		for _, tl := range b.deps.Tools(c) {
			if s := tl.Spec(); s.Name == name {
				return s.Wary != nil && s.Wary(json.RawMessage(args)) != ""
			}
		}
		t.Fatal(name)
		return false
	}
	own := b.conversation("github", "github", "gitlab")
	for _, c := range []struct {
		conv       propose.Conversation
		name, args string
		want       bool
	}{
		{own, "create_pr", fixIt, false},
		{own, "create_pr", strings.Replace(fixIt, "octo/app", "Octo/App", 1), false},
		{own, "create_pr", strings.Replace(fixIt, "octo/app", "octo/other", 1), true},
		{own, "create_pr", `nonsense`, true},
		{own, "create_mr", `{"id":"octo/app"}`, true}, // at another provider
		{own, "create_mr", `{"id":77}`, true},
		{propose.Conversation{Stored: []string{"github"}}, "create_pr", fixIt, true},
		{own, "comment_on_issue", `{"number":1,"text":"x"}`, false},
		{own, "comment_on_issue", `{"number":1,"text":"x","repo_name":"octo/other"}`, true},
		{own, "comment_on_issue", `{"number":1,"text":"x","provider":"gitlab"}`, true},
		{own, "read_issue", `{"number":1,"repo_name":"octo/other"}`, false},
	} {
		if got := wary(c.conv, c.name, c.args); got != c.want {
			t.Errorf("%s %s: %t", c.name, c.args, got)
		}
	}
}

func TestRead(t *testing.T) {
	b := newBench(t)
	own := b.conversation("github", "github", "gitlab")
	text := b.use(own, "read_issue", `{"number":7,"kind":"pull_request"}`, false).Text
	for _, part := range []string{"Request #7 in octo/app (merged): Change it", "By ada.", "the branch fix into main", "draft", "conflicts", "Because.", "- lint: failed\n- test: passed", "Comment 1 of 1\nbob: main.go:7: Why this?"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in %s", part, text)
		}
	}
	text = b.use(own, "read_issue", `{"number":8,"repo_name":"up/stream","provider":"gitlab"}`, false).Text
	for _, part := range []string{"Issue #8 in up/stream (open): It is broken in up/stream", "[20 older comments are left out]", "Comment 21 of 120\nbob: number 21", "Comment 120 of 120"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in %.300s", part, text)
		}
	}
	if len(text) > 20_000 || b.opened[1] != "ada gitlab" {
		t.Errorf("%d characters by %q", len(text), b.opened)
	}
	for args, want := range map[string]string{
		`{"number":0}`: "from 1", `{"number":1,"repo_name":"a"}`: "not the name", `{"number":1,"provider":"gitea"}`: "No token is stored for gitea", `{"number":"x"}`: "must be a whole number",
	} {
		if r := b.use(own, "read_issue", args, false); !r.Failed || !strings.Contains(r.Text, want) {
			t.Errorf("%s: %+v", args, r)
		}
	}
	if r := b.use(propose.Conversation{Stored: []string{"github"}}, "read_issue", `{"number":1}`, false); !r.Failed || !strings.Contains(r.Text, "repo_name") {
		t.Errorf("%+v", r)
	}
	if r := b.use(propose.Conversation{Stored: []string{"github", "gitea"}}, "read_issue", `{"number":1,"repo_name":"a/b"}`, false); !r.Failed || !strings.Contains(r.Text, "provider") {
		t.Errorf("%+v", r)
	}
	b.forge.fail = gitprovider.Failure("github", "github.com", gitprovider.NotFound, "")
	if r := b.use(own, "read_issue", `{"number":1}`, false); !r.Failed || !strings.Contains(r.Text, "Not found on GitHub") {
		t.Errorf("%+v", r)
	}
}

func TestComment(t *testing.T) {
	b := newBench(t)
	own := b.conversation("github", "github")
	if r := b.use(own, "comment_on_issue", `{"number":7,"kind":"pull_request","text":" Done. "}`, false); r.Failed || b.forge.comments[0] != "octo/app 7 true "+gitprovider.Sign("Done.", "agent") {
		t.Errorf("%+v %q", r, b.forge.comments)
	}
	if r := b.use(own, "comment_on_issue", `{"number":7,"text":"  "}`, false); !r.Failed {
		t.Errorf("%+v", r)
	}
	// Whether a comment was written before a restart cannot be known, and twice is worse than asking.
	if r := b.use(own, "comment_on_issue", `{"number":7,"text":"Done."}`, true); !r.Unknown || len(b.forge.comments) != 1 {
		t.Errorf("%+v", r)
	}
}

// guarded is a provider that insists on names that are safe to pass on.
type guarded struct {
	*forge
	t *testing.T
}

func (g guarded) Propose(ctx context.Context, p gitprovider.Proposal) (gitprovider.Request, error) {
	digits := p.Repository != "" && strings.Trim(p.Repository, "0123456789") == ""
	if !gitprovider.ValidRepository(p.Repository) && !digits || !gitprovider.ValidBranch(p.Source) || !gitprovider.ValidBranch(p.Target) || p.Source == p.Target || p.Title == "" {
		g.t.Errorf("%+v reaches the provider", p)
	}
	return g.forge.Propose(ctx, p)
}

// Whatever a model writes, nothing breaks and only names reach a provider.
func FuzzArguments(f *testing.F) {
	f.Add(fixIt)
	f.Add(`{"id":12.5,"source_branch":"a","target_branch":"b","title":"t","description":"d"}`)
	f.Add(`{"id":"1e9","source_branch":"a","target_branch":"--b","title":"t","labels":["x",null]}`)
	f.Add(`{"number":1e3,"text":"x","kind":"pull_request","repo_name":"a/..","provider":"github"}`)
	f.Fuzz(func(t *testing.T, args string) {
		o := &propose.Deps{Sessions: session.New(memlog.New()), Open: func(context.Context, string, string) (gitprovider.Provider, error) {
			return guarded{&forge{}, t}, nil
		}}
		for _, tl := range o.Tools(propose.Conversation{Provider: "github", Repository: "octo/app", Stored: []string{"bitbucket", "gitea", "github", "gitlab"}}) {
			if s := tl.Spec(); s.Wary != nil {
				_ = s.Wary(json.RawMessage(args))
			}
			if r, err := tl.Run(t.Context(), nil, tool.Call{Args: json.RawMessage(args), Owner: "ada"}); err != nil || r.Text == "" {
				t.Errorf("%s: %+v %v", tl.Spec().Name, r, err)
			}
		}
	})
}

package providertest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/gitprovider"
)

// comment is what the suite says below an issue.
const comment = "Done: \"all\" of it.\nSee <the branch> & <b>tell</b> me – Ünïcode."

// Run shows that an adapter does what gitprovider.Provider promises.
func Run(t *testing.T, o Options) {
	for name, check := range map[string]func(*testing.T, Options){
		"answers": answers, "pages": pages, "branches": branches, "search": search, "comments": comments,
		"absent": absent, "anonymous": anonymous, "failures": failures, "denial": denial, "redirects": redirects, "cancelled": cancelled,
	} {
		t.Run(name, func(t *testing.T) { check(t, o) })
	}
}

// named is one call of the port, with arguments that the world knows.
type named struct {
	name string
	raw  bool // any body is an answer
	do   func(ctx context.Context, p gitprovider.Provider) (any, error)
}

// calls are all that can be asked of an adapter, Installations only if it has them.
func calls(w World) []named {
	name := w.Repository.Name
	all := []named{
		{"User", false, func(ctx context.Context, p gitprovider.Provider) (any, error) { return p.User(ctx) }},
		{"Repositories", false, func(ctx context.Context, p gitprovider.Provider) (any, error) {
			return p.Repositories(ctx, gitprovider.RepositoryQuery{Sort: "pushed", Page: 1, PerPage: 100})
		}},
		{"Search", false, func(ctx context.Context, p gitprovider.Provider) (any, error) {
			return p.Search(ctx, gitprovider.SearchQuery{Text: w.Text, Sort: "stars", Order: "desc", PerPage: 5})
		}},
		{"Repository", false, func(ctx context.Context, p gitprovider.Provider) (any, error) { return p.Repository(ctx, name) }},
		{"Branches", false, func(ctx context.Context, p gitprovider.Provider) (any, error) {
			return p.Branches(ctx, name, gitprovider.BranchQuery{Page: 1, PerPage: 100})
		}},
		{"BranchesWith", false, func(ctx context.Context, p gitprovider.Provider) (any, error) {
			return p.Branches(ctx, name, gitprovider.BranchQuery{Query: w.Part, Page: 1, PerPage: 100})
		}},
		{"Tasks", false, func(ctx context.Context, p gitprovider.Provider) (any, error) { return p.Tasks(ctx) }},
		{"Folder", false, func(ctx context.Context, p gitprovider.Provider) (any, error) {
			return p.Folder(ctx, name, w.Ref, w.Folder)
		}},
		{"File", true, func(ctx context.Context, p gitprovider.Provider) (any, error) {
			content, err := p.File(ctx, name, w.Ref, w.File)
			return string(content), err
		}},
		{"Propose", false, func(ctx context.Context, p gitprovider.Provider) (any, error) { return p.Propose(ctx, w.Proposal) }},
		{"Proposed", false, func(ctx context.Context, p gitprovider.Provider) (any, error) {
			return p.Proposed(ctx, name, w.Request.Source, w.Request.Target)
		}},
		{"Request", false, func(ctx context.Context, p gitprovider.Provider) (any, error) {
			return p.Request(ctx, name, w.Request.Number)
		}},
		{"Discussion", false, func(ctx context.Context, p gitprovider.Provider) (any, error) {
			return p.Discussion(ctx, name, w.Request.Number)
		}},
		{"Issue", false, func(ctx context.Context, p gitprovider.Provider) (any, error) {
			return p.Issue(ctx, name, w.Issue.Number)
		}},
		{"Comment", true, func(ctx context.Context, p gitprovider.Provider) (any, error) {
			return nil, p.Comment(ctx, name, w.Issue.Number, false, comment)
		}},
		{"CommentPull", true, func(ctx context.Context, p gitprovider.Provider) (any, error) {
			return nil, p.Comment(ctx, name, w.Request.Number, true, comment)
		}},
	}
	if w.Installations != nil {
		all = append(all, named{"Installations", false, func(ctx context.Context, p gitprovider.Provider) (any, error) { return p.Installations(ctx) }})
	}
	return all
}

// answers compares what single calls return with what the fake knows.
func answers(t *testing.T, o Options) {
	w, s := o.World, serve(t, o)
	p := s.provider(t, o, Token)
	want := map[string]any{
		"User": w.User, "Repository": w.Repository, "Tasks": w.Tasks, "Folder": w.Files, "File": w.Content, "Propose": w.Proposed,
		"Proposed": w.Request, "Request": w.Request, "Discussion": w.Discussion, "Issue": w.Issue, "Installations": w.Installations,
	}
	for _, c := range calls(w) {
		got, err := c.do(t.Context(), p)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if expected, ok := want[c.name]; ok {
			if c.name == "Proposed" { // lists need not tell whether it can be merged
				got, expected = settled(got), settled(expected)
			}
			same(t, c.name, got, expected)
		}
	}
	if got, err := p.File(t.Context(), w.Repository.Name, "", w.File); err != nil || string(got) != w.Content {
		t.Errorf("a file of the main branch: %q %v", got, err)
	}
	if w.Installations == nil {
		_, err := p.Installations(t.Context())
		reason(t, "Installations", err, gitprovider.Unsupported)
	}
	for _, r := range s.requests() {
		if !r.authorized {
			t.Errorf("%s was asked without the token", r.line)
		}
		if strings.Contains(r.line, "conformance-token") {
			t.Errorf("the token is in an address: %s", r.line)
		}
	}
}

func settled(request any) any {
	r := request.(gitprovider.Request)
	r.Mergeable = nil
	return r
}

// pages walks through the list on three pages and meets every repository once, in order.
func pages(t *testing.T, o Options) {
	p := serve(t, o).provider(t, o, Token)
	size := (len(o.World.Repositories) + 2) / 3
	var all []gitprovider.Repository
	page, turned := 1, 0
	for ; page != 0; turned++ {
		got, err := p.Repositories(t.Context(), gitprovider.RepositoryQuery{Sort: "pushed", Page: page, PerPage: size})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Items) > size || got.Next != 0 && got.Next != page+1 {
			t.Fatalf("page %d has %d repositories and leads to %d", page, len(got.Items), got.Next)
		}
		all, page = append(all, got.Items...), got.Next
	}
	if turned != 3 {
		t.Errorf("%d pages, want 3: the world needs at least three repositories", turned)
	}
	same(t, "repositories", all, o.World.Repositories)
	beyond, err := p.Repositories(t.Context(), gitprovider.RepositoryQuery{Sort: "pushed", Page: 9, PerPage: size})
	if err != nil || len(beyond.Items) != 0 || beyond.Next != 0 {
		t.Errorf("beyond the last page: %+v %v", beyond, err)
	}
}

// branches walks through the branches on three pages, and finds some by a part of the name.
func branches(t *testing.T, o Options) {
	p := serve(t, o).provider(t, o, Token)
	name, size := o.World.Repository.Name, (len(o.World.Branches)+2)/3
	var all []gitprovider.Branch
	for page, more := 1, true; more; page++ {
		got, err := p.Branches(t.Context(), name, gitprovider.BranchQuery{Page: page, PerPage: size})
		if err != nil {
			t.Fatal(err)
		}
		if got.More != (page < 3) || got.Total != -1 && got.Total != len(o.World.Branches) {
			t.Fatalf("page %d: more %t, total %d", page, got.More, got.Total)
		}
		all, more = append(all, got.Items...), got.More
	}
	same(t, "branches", all, o.World.Branches)
	got, err := p.Branches(t.Context(), name, gitprovider.BranchQuery{Query: o.World.Part, Page: 1, PerPage: 30})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, b := range got.Items {
		names = append(names, b.Name)
	}
	same(t, "branches with "+o.World.Part, names, o.World.With)
	none, err := p.Branches(t.Context(), name, gitprovider.BranchQuery{Query: "no-such-branch", Page: 1, PerPage: 30})
	if err != nil || len(none.Items) > 0 || none.More {
		t.Errorf("a search that finds nothing: %+v %v", none, err)
	}
}

// search finds by a part of the name, and exactly by an address.
func search(t *testing.T, o Options) {
	s := serve(t, o)
	p := s.provider(t, o, Token)
	find := func(text string) (names []string) {
		got, err := p.Search(t.Context(), gitprovider.SearchQuery{Text: text, Sort: "stars", Order: "desc", PerPage: 30})
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		for _, r := range got {
			names = append(names, r.Name)
		}
		return names
	}
	found := find(o.World.Text)
	slices.Sort(found)
	same(t, "found by "+o.World.Text, found, slices.Sorted(slices.Values(o.World.Found)))
	page := o.World.Page
	if page == "" {
		page = "/" + o.World.Repository.Name
	}
	for text, want := range map[string][]string{
		s.URL + page: {o.World.Repository.Name}, " " + s.URL + page + "/ ": {o.World.Repository.Name},
		"https://another.example.org" + page: nil, s.URL + "/" + Missing: nil,
	} {
		same(t, "pasted "+text, find(text), want)
	}
}

// comments looks whether the very text arrives.
func comments(t *testing.T, o Options) {
	for _, pull := range []bool{false, true} {
		s, number := serve(t, o), o.World.Issue.Number
		if pull {
			number = o.World.Request.Number
		}
		if err := s.provider(t, o, Token).Comment(t.Context(), o.World.Repository.Name, number, pull, comment); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(s.requests(), func(r request) bool { return holds(r.body, comment) }) {
			t.Errorf("pull %t: the text did not arrive", pull)
		}
	}
}

// holds reports whether a JSON document has the text as a value, anywhere.
func holds(document []byte, text string) bool {
	var v any
	if json.Unmarshal(document, &v) != nil {
		return false
	}
	var within func(any) bool
	within = func(v any) bool {
		switch v := v.(type) {
		case string:
			return v == text
		case map[string]any:
			for _, inner := range v {
				if within(inner) {
					return true
				}
			}
		case []any:
			return slices.ContainsFunc(v, within)
		}
		return false
	}
	return within(v)
}

// same compares as JSON does, which shows differences in a readable way. No items and no list are the same.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	a, errA := json.Marshal(got)
	b, errB := json.Marshal(want)
	empty := func(text string) bool { return text == "null" || text == "[]" }
	if errA != nil || errB != nil || string(a) != string(b) && !(empty(string(a)) && empty(string(b))) {
		t.Errorf("%s:\n got %s\nwant %s", what, a, b)
	}
}

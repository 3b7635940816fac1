package gitea

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
	"deckhand/internal/gitprovider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// refusal is how Gitea says that there is such a pull request already.
const refusal = `{"message":"pull request already exists for these targets [id: 1, issue_id: 2]","url":"https://git.example.org/api/swagger","errors":[]}`

func adapter(client *http.Client, host, token string) gitprovider.Provider {
	return New(call.Options{Client: client, Token: token, Host: host, Name: "gitea"})
}

func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Options{
		New: adapter, Serve: func(t *testing.T) http.Handler { return newFake().handler(t) }, World: fakeWorld(),
		Denial: refusal, Says: "pull request already exists for these targets",
	})
}

// connect starts the fake and the adapter for it.
func connect(t *testing.T, f *fake) (gitprovider.Provider, *httptest.Server) {
	s := httptest.NewServer(f.handler(t))
	t.Cleanup(s.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	p := adapter(&http.Client{Transport: transport}, s.URL, "token")
	p.(*provider).pauses = []time.Duration{1, 1} // a fake needs no time to look
	return p, s
}

func TestTasks(t *testing.T) {
	dismissed := reviewOf(1, "REQUEST_CHANGES", "No.")
	dismissed["dismissed"] = true
	for name, test := range map[string]struct {
		title     string
		mergeable bool
		statuses  []obj
		reviews   []obj
		want      string
	}{
		"nothing to do":          {mergeable: true},
		"conflicts":              {want: gitprovider.MergeConflicts},
		"conflicts come first":   {statuses: []obj{statusOf("ci", "failure")}, want: gitprovider.MergeConflicts},
		"a draft never merges":   {title: "WIP: Later"},
		"a draft fails checks":   {title: "[wip] Later", statuses: []obj{statusOf("ci", "failure")}, want: gitprovider.FailingChecks},
		"failing":                {mergeable: true, statuses: []obj{statusOf("a", "success"), statusOf("b", "failure")}, want: gitprovider.FailingChecks},
		"broken":                 {mergeable: true, statuses: []obj{statusOf("a", "error")}, want: gitprovider.FailingChecks},
		"running":                {mergeable: true, statuses: []obj{statusOf("a", "pending")}},
		"checks before comments": {mergeable: true, statuses: []obj{statusOf("a", "failure")}, reviews: []obj{reviewOf(1, "COMMENT", "")}, want: gitprovider.FailingChecks},
		"commented":              {mergeable: true, reviews: []obj{reviewOf(1, "APPROVED", ""), reviewOf(2, "COMMENT", "")}, want: gitprovider.UnresolvedComments},
		"changes wanted":         {mergeable: true, reviews: []obj{reviewOf(1, "REQUEST_CHANGES", "")}, want: gitprovider.UnresolvedComments},
		"dismissed":              {mergeable: true, reviews: []obj{dismissed}},
		"approved":               {mergeable: true, reviews: []obj{reviewOf(1, "APPROVED", ""), reviewOf(2, "REQUEST_REVIEW", ""), reviewOf(3, "PENDING", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			if test.title == "" {
				test.title = "Oil the wheels"
			}
			f.pulls = map[int]obj{21: pullOf(21, test.title, "topic", test.mergeable)}
			f.statuses = map[string][]obj{"sha-topic": test.statuses}
			f.reviews = map[int][]obj{21: test.reviews}
			p, _ := connect(t, f)
			got, err := p.Tasks(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := []gitprovider.Task{{Type: gitprovider.OpenIssue, Repository: "ada/engine", Title: "It squeaks", Number: 22}}
			if test.want != "" {
				want = slices.Insert(want, 0, gitprovider.Task{Type: test.want, Repository: "ada/engine", Title: test.title, Number: 21})
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// What is not mergeable at first may only not have been looked at.
func TestSettle(t *testing.T) {
	for name, test := range map[string]struct {
		after int // calls until it is found mergeable
		want  bool
		calls int64
	}{
		"at once": {0, true, 1}, "at the second look": {1, true, 2}, "at the last": {2, true, 3}, "never": {9, false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			var calls atomic.Int64
			answer := f.handler(t)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/pulls/21") {
					send(t, w, r, pullOf(21, "Oil", "topic", int(calls.Add(1)) > test.after))
					return
				}
				answer.ServeHTTP(w, r)
			}))
			defer s.Close()
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			p := adapter(&http.Client{Transport: transport}, s.URL, "token")
			p.(*provider).pauses = []time.Duration{1, 1}
			got, err := p.Request(t.Context(), "ada/engine", 21)
			if err != nil || got.Mergeable == nil || *got.Mergeable != test.want || calls.Load() != test.calls {
				t.Errorf("%+v %v after %d calls", got, err, calls.Load())
			}
			calls.Store(0)
			tasks, err := p.Tasks(t.Context())
			if err != nil || slices.ContainsFunc(tasks, func(one gitprovider.Task) bool { return one.Type == gitprovider.MergeConflicts }) == test.want {
				t.Errorf("%+v %v", tasks, err)
			}
		})
	}
	// Who gives up does not wait for the pause.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := &provider{pauses: []time.Duration{time.Hour}}
	if err := p.settle(ctx, []*seen{{pull: pull{State: "open"}}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A pull request that goes away between the list and the look at it is left
// out; one that cannot be looked at for another reason is said.
func TestTasksWhenOneFails(t *testing.T) {
	for status, want := range map[int]gitprovider.Reason{404: "", 401: gitprovider.BadToken, 500: gitprovider.Unavailable} {
		f := newFake()
		for n := 1; n < 20; n++ {
			f.pulls[n] = pullOf(n, "More", "topic", true)
		}
		real := f.handler(t)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/pulls/7") {
				w.WriteHeader(status)
				return
			}
			real.ServeHTTP(w, r)
		}))
		transport := &http.Transport{}
		got, err := adapter(&http.Client{Transport: transport}, s.URL, "token").Tasks(t.Context())
		if gitprovider.ReasonOf(err) != want || want == "" && len(got) != 2 {
			t.Errorf("%d: %d tasks, %v", status, len(got), err)
		}
		transport.CloseIdleConnections()
		s.Close()
	}
}

func TestProposeFindsMainBranchAndLabels(t *testing.T) {
	f := newFake()
	p, _ := connect(t, f)
	in := gitprovider.Proposal{Repository: "ada/engine", Title: "Grease", Body: "As asked.", Source: "fix/logout", Labels: []string{"EASY"}}
	got, err := p.Propose(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if got.Target != "main" || got.Title != "Grease" || got.Draft || got.Mergeable != nil {
		t.Errorf("%+v", got)
	}
	labels, ok := f.pulls[40]["labels"].([]obj)
	if !ok || len(labels) != 1 || labels[0]["name"] != "Easy" {
		t.Errorf("labels: %v", labels)
	}
	in.Title, in.Draft = "[WIP] Grease", true
	if got, err = p.Propose(t.Context(), in); err != nil || got.Title != "[WIP] Grease" || !got.Draft {
		t.Errorf("%+v %v", got, err)
	}
	in.Labels = []string{"bug", "no such"}
	delete(f.pulls, 40)
	_, err = p.Propose(t.Context(), in)
	if gitprovider.ReasonOf(err) != gitprovider.Refused || !strings.Contains(err.Error(), `no label "no such"`) {
		t.Error(err)
	}
	if f.pulls[40] != nil {
		t.Error("it was opened all the same")
	}
}

func TestStatesOfRequests(t *testing.T) {
	f := newFake()
	merged, closed, gone, fork := pullOf(1, "A", "a", false), pullOf(2, "B", "b", false), pullOf(3, "C", "c", true), pullOf(4, "D", "d", true)
	merged["state"], merged["merged"] = "closed", true
	closed["state"] = "closed"
	gone["head"].(obj)["ref"] = "refs/pull/3/head"
	fork["head"].(obj)["repo_id"] = 70
	fork["head"].(obj)["repo"] = obj{"owner": person(2, "grace", "Grace")}
	f.pulls = map[int]obj{1: merged, 2: closed, 3: gone, 4: fork}
	p, _ := connect(t, f)
	for number, want := range map[int]gitprovider.Request{
		1: {State: "merged", Source: "a"}, 2: {State: "closed", Source: "b"}, 3: {State: "open", Source: "c"}, 4: {State: "open", Source: "d"},
	} {
		got, err := p.Request(t.Context(), "ada/engine", number)
		if err != nil || got.State != want.State || got.Source != want.Source || (got.Mergeable != nil) != (want.State == "open") {
			t.Errorf("%d: %+v %v", number, got, err)
		}
	}
	if got, err := p.Proposed(t.Context(), "ada/engine", "c", "release"); gitprovider.ReasonOf(err) != gitprovider.NotFound {
		t.Errorf("to another branch: %+v %v", got, err)
	}
	for source, want := range map[string]int{"grace:d": 4, "c": 3, "d": 0, "a": 0} {
		got, err := p.Proposed(t.Context(), "ada/engine", source, "main")
		if got.Number != want || (err == nil) != (want != 0) {
			t.Errorf("%s: %+v %v", source, got, err)
		}
	}
}

func TestContents(t *testing.T) {
	p, _ := connect(t, newFake())
	odd, err := p.File(t.Context(), "ada/engine", "", "with space/é#?.md")
	if err != nil || string(odd) != "odd" {
		t.Errorf("%q %v", odd, err)
	}
	root, err := p.Folder(t.Context(), "ada/engine", "", "/")
	if err != nil || len(root) != 3 || root[1] != (gitprovider.File{Name: "README.md", Path: "README.md"}) {
		t.Errorf("%+v %v", root, err)
	}
	if _, err := p.Folder(t.Context(), "ada/engine", "", "README.md"); gitprovider.ReasonOf(err) != gitprovider.NotFound {
		t.Errorf("a file as a folder: %v", err)
	}
}

// Names that are none never reach the host, where they could mean something else.
func TestHostileNames(t *testing.T) {
	asked := false
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer s.Close()
	p := adapter(s.Client(), s.URL, "token")
	for _, name := range []string{"", "ada", "ada/engine/branches", "ada/..", "../admin", "ada/engine?x=", "-x/y", "ada/engine#", "ada//engine"} {
		_, err := p.Repository(t.Context(), name)
		_, errFile := p.File(t.Context(), name, "", "x")
		_, errOpen := p.Propose(t.Context(), gitprovider.Proposal{Repository: name, Source: "a", Target: "b", Title: "c"})
		for _, err := range []error{err, errFile, errOpen, p.Comment(t.Context(), name, 1, false, "x")} {
			if gitprovider.ReasonOf(err) != gitprovider.NotFound {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	if asked {
		t.Error("the host was asked")
	}
}

func TestHosts(t *testing.T) {
	for _, test := range []struct{ name, host, want string }{
		{"gitea", "", "https://gitea.com/api/v1/user"},
		{"forgejo", "", "https://codeberg.org/api/v1/user"},
		{"forgejo", "git.example.org:3000", "https://git.example.org:3000/api/v1/user"},
		{"gitea", "http://127.0.0.1:3000/code/", "http://127.0.0.1:3000/code/api/v1/user"},
		{"enterprise_sso", "git.example.org", "https://git.example.org/api/v1/user"},
	} {
		var got *http.Request
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			got = r
			return nil, errors.New("not today")
		})}
		_, err := New(call.Options{Client: client, Token: "s3cret", Host: test.host, Name: test.name}).User(t.Context())
		if gitprovider.ReasonOf(err) != gitprovider.Unavailable || got == nil || got.URL.String() != test.want || got.Header.Get("Authorization") != "Bearer s3cret" {
			t.Errorf("%+v: %v %v", test, got, err)
		}
	}
	if _, err := New(call.Options{Client: http.DefaultClient, Name: "enterprise_sso"}).User(t.Context()); gitprovider.ReasonOf(err) != gitprovider.Refused {
		t.Errorf("no host: %v", err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The first failure stops the rest, and no goroutine is left behind.
func TestSideBySide(t *testing.T) {
	boom := errors.New("boom")
	started := make(chan struct{}, 100)
	err := sideBySide(t.Context(), 100, func(ctx context.Context, i int) error {
		started <- struct{}{}
		if i == 2 {
			return boom
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, boom) || len(started) > atOnce+1 {
		t.Errorf("%v after %d", err, len(started))
	}
	if err := sideBySide(t.Context(), 0, nil); err != nil {
		t.Error(err)
	}
}

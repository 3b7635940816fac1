package trigger_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/trigger"
)

// told sends a delivery that something is to be done about.
func (r *rig) told(d delivery, secret string) {
	r.t.Helper()
	if got, err := r.send(d, secret); err != nil || got.State != trigger.Waiting || got.Known {
		r.t.Fatalf("%+v %v", got, err)
	}
}

func (r *rig) texts(id session.ID) []string {
	r.t.Helper()
	var out []string
	for e, err := range r.db.Read(r.t.Context(), id, 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		if said, ok := e.Payload.(session.UserSaid); ok {
			out = append(out, said.Text)
		}
	}
	return out
}

var inGitea = shapes["gitea"]

// A comment starts a conversation, another one continues it, and what the agent
// says is posted after each.
func TestCommentStartsAndContinues(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	in, secret := r.add("maria", "gitea", trigger.Change{})
	r.run()
	r.told(deliver(t, "gitea", inGitea.comment, "1"), secret)
	id := r.reaches(trigger.Working).Session
	s := r.starts()[0]
	if s.ID != id || s.User != "maria" || s.Provider != "gitea" || s.Repository != "octo/app" || s.Branch != "" || s.Key == "" {
		t.Errorf("%+v", s)
	}
	for _, part := range []string{"ada asks for your help with issue #7 in the repository octo/app on Gitea", "eve: The wheel came off", "It rolls away.", "It did here too.", "@deckhand mend it",
		"create_gitea_pr", "do not comment there yourself"} {
		if !strings.Contains(s.Text, part) {
			t.Errorf("%q is missing in %s", part, s.Text)
		}
	}
	r.says(id, "It is on again.\n\n```\nsnug")
	r.reaches(trigger.Answered)
	said := r.place.said("7")
	if len(said) != 1 || !strings.HasPrefix(said[0], "It is on again.\n\n```\nsnug\n```\n\n---\n[Conversation](https://deckhand.example.org/conversations/"+string(id)+") · Mention `@deckhand` to continue.\n\n[//]: # (deckhand "+string(id)) {
		t.Fatalf("%q", said)
	}

	r.told(deliver(t, "gitea", inGitea.comment, "2", "TEXT", "@deckhand and the other one?"), secret)
	if d := r.reaches(trigger.Working); d.Session != id {
		t.Errorf("it went to %s", d.Session)
	}
	if got := r.texts(id); len(got) != 2 || !strings.Contains(got[1], "@deckhand and the other one?") || len(r.starts()) != 1 {
		t.Errorf("%q", got)
	}
	r.says(id, "That one too.")
	r.reaches(trigger.Answered)
	if said := r.place.said("7"); len(said) != 2 || !strings.HasPrefix(said[1], "That one too.\n") {
		t.Errorf("%q", said)
	}
	for _, d := range r.log(in) {
		if d.State != trigger.Answered || d.Session != id || d.Task != nil || d.DoneAt.IsZero() {
			t.Errorf("%+v", d)
		}
	}
	if strings.Contains(r.logs.String(), token) || strings.Contains(r.logs.String(), secret) {
		t.Error("the log holds a secret")
	}
}

// A comment that comes while an answer is being recorded is answered as well.
func TestCommentWhileAnAnswerIsRecorded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	release, first := make(chan struct{}), true
	r.inbox.then = func(d trigger.Delivery) {
		if d.State == trigger.Answered && first { // only the one goroutine that answers comes here at first
			first = false
			<-release
		}
	}
	_, secret := r.add("maria", "gitea", trigger.Change{})
	r.run()
	r.told(deliver(t, "gitea", inGitea.comment, "1"), secret)
	id := r.reaches(trigger.Working).Session
	r.says(id, "It is on again.")
	r.reaches(trigger.Answered)
	r.told(deliver(t, "gitea", inGitea.comment, "2", "TEXT", "@deckhand and the other one?"), secret)
	r.reaches(trigger.Working)
	r.says(id, "That one too.", func() {
		// The worker looks at the busy conversation before it gets to something that came later.
		r.told(deliver(t, "gitea", inGitea.label, "3"), secret)
		r.reaches(trigger.Ignored)
		close(release)
		r.told(deliver(t, "gitea", [2]string{"gitea_issue_opened", "issues"}, "4"), secret)
		r.reaches(trigger.Ignored)
	})
	r.reaches(trigger.Answered)
}

// Words of others cannot end the part that is theirs.
func TestWordsOfOthersStayWithinTheirBounds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, secret := r.add("maria", "gitea", trigger.Change{})
	r.run()
	r.told(deliver(t, "gitea", inGitea.comment, "1"), secret)
	r.reaches(trigger.Working)
	text := r.starts()[0].Text
	_, rest, _ := strings.Cut(text, "between lines with the word ")
	nonce, _, _ := strings.Cut(rest, ".")
	if len(nonce) < 10 || strings.Count(text, "----- "+nonce+" begin: ") != 3 || strings.Count(text, "----- "+nonce+" end\n") != 3 || strings.Count(text, "----- end") != 1 {
		t.Errorf("%q in %s", nonce, text)
	}
}

// A label starts a conversation once; a stopped one is woken, a deleted one replaced.
func TestLabelThenStopThenDelete(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, secret := r.add("maria", "gitea", trigger.Change{})
	r.run()
	r.told(deliver(t, "gitea", inGitea.label, "1"), secret)
	id := r.reaches(trigger.Working).Session
	if text := r.starts()[0].Text; strings.Contains(text, "request of") || !strings.Contains(text, "It rolls away.") {
		t.Error(text)
	}
	r.told(deliver(t, "gitea", [2]string{"gitea_issue_opened", "issues"}, "2"), secret)
	if d := r.reaches(trigger.Ignored); d.Session != id || !strings.Contains(d.Reason, "already has a conversation") {
		t.Errorf("%+v", d)
	}
	change := func(decide func(s session.State) ([]session.Payload, error)) {
		t.Helper()
		if _, err := r.sessions.Update(t.Context(), id, decide); err != nil {
			t.Fatal(err)
		}
	}
	change(func(s session.State) ([]session.Payload, error) { return s.Stop("by hand") })
	r.reaches(trigger.Answered)
	if said := r.place.said("7"); len(said) != 1 || !strings.Contains(said[0], "stopped before I could reply") {
		t.Errorf("%q", said)
	}
	r.told(deliver(t, "gitea", inGitea.comment, "3"), secret)
	r.reaches(trigger.Working)
	if st, err := r.sessions.Load(t.Context(), id); err != nil || st.Stopped || !st.Pending() {
		t.Errorf("it sleeps on: %v", err)
	}
	change(func(s session.State) ([]session.Payload, error) { return s.Delete() })
	if d := r.reaches(trigger.Failed); !strings.Contains(d.Reason, "deleted") {
		t.Errorf("%+v", d)
	}
	r.told(deliver(t, "gitea", inGitea.comment, "4", "TEXT", "@deckhand again"), secret)
	if d := r.reaches(trigger.Working); d.Session == id || len(r.starts()) != 2 {
		t.Errorf("%+v", d)
	}
}

// Gitea does not say which label is new. Who gives an issue some other label does
// not ask for what another user has marked.
func TestLabelOfSomebodyElse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.place.labeller = "mallory"
	_, secret := r.add("maria", "gitea", trigger.Change{})
	_, theirs := r.add("otto", "gitea", trigger.Change{AllowedUsers: []string{trigger.AllUsers}})
	r.run()
	r.told(deliver(t, "gitea", inGitea.label, "1"), secret)
	if d := r.reaches(trigger.Ignored); d.Session != "" || d.Reason != "The user who added the label is not in allowed_users." || len(r.starts()) > 0 {
		t.Errorf("%+v", d)
	}
	r.told(deliver(t, "gitea", inGitea.label, "2"), theirs)
	r.reaches(trigger.Working)
}

// A comment below a pull request finds its branch, or does without; and the
// conversation that opened it, if there is one.
func TestPullRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, secret := r.add("maria", "gitea", trigger.Change{})
	_, theirs := r.add("otto", "gitea", trigger.Change{})
	r.refuse = func(branch string) error {
		if branch == "gone" {
			return &trigger.RefusedError{Msg: "no such branch", Branch: true}
		}
		return nil
	}
	r.run()
	r.told(deliver(t, "gitea", inGitea.pull, "1"), theirs)
	r.reaches(trigger.Working)
	if s := r.starts()[0]; s.User != "otto" || s.Branch != "mend" || !strings.Contains(s.Text, "pull request #12") || !strings.Contains(s.Text, "The branch mend is checked out") {
		t.Errorf("%+v", s)
	}
	r.told(deliver(t, "gitea", [2]string{"gitea_review", "pull_request_comment"}, "2", `"mend"`, `"gone"`, `"number": 12`, `"number": 13`), theirs)
	d := r.reaches(trigger.Working)
	if s := r.starts(); len(s) != 3 || s[1].Branch != "gone" || s[2].Branch != "" || !strings.Contains(s[2].Text, "git fetch origin pull/13/head") {
		t.Errorf("%+v", s)
	}
	r.says(d.Session, "Fetched.")
	r.reaches(trigger.Answered)
	if said := r.place.said("13"); len(said) != 1 {
		t.Errorf("%q", said)
	}

	const mine session.ID = "mine"
	if _, err := r.sessions.Create(t.Context(), mine, session.Created{Owner: "maria", Repository: "octo/app", Provider: "gitea"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.sessions.Update(t.Context(), mine, func(s session.State) ([]session.Payload, error) {
		return s.Opened(session.RequestOpened{Provider: "gitea", Repository: "octo/app", Number: 12})
	}); err != nil {
		t.Fatal(err)
	}
	r.told(deliver(t, "gitea", inGitea.pull, "3"), secret)
	if d := r.reaches(trigger.Working); d.Session != mine || len(r.starts()) != 3 {
		t.Errorf("%+v", d)
	}
}

// What was recorded is done by the next server, once, wherever the last one died.
func TestRestart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	in, secret := r.add("maria", "gitea", trigger.Change{})
	r.told(deliver(t, "gitea", inGitea.comment, "1"), secret) // no worker runs yet
	r.again()
	stop := r.run()
	id := r.reaches(trigger.Working).Session
	stop()
	// It died after it had created the conversation, and before it recorded that.
	d := r.log(in)[0]
	d.State, d.Session, d.Task, d.NextAt = trigger.Waiting, "", []byte(`{"actors":["ada"],"text":"@deckhand mend it","comment":true}`), d.CreatedAt
	if err := r.db.Triggers().Settle(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	r.again()
	stop = r.run()
	if d := r.reaches(trigger.Working); d.Session != id || len(r.starts()) != 1 || len(r.texts(id)) != 1 {
		t.Errorf("%+v, %d started, %q said", d, len(r.starts()), r.texts(id))
	}
	stop()
	// The agent finishes while no worker runs.
	r.again()
	r.says(id, "Done.")
	r.run()
	r.reaches(trigger.Answered)
	if said := r.place.said("7"); len(said) != 1 {
		t.Errorf("%q", said)
	}
}

// An answer that may have been posted is looked for first.
func TestAnswerIsPostedOnce(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]bool{"it was": true, "it was not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			_, secret := r.add("maria", "gitea", trigger.Change{})
			stop := r.run()
			r.told(deliver(t, "gitea", inGitea.comment, "1"), secret)
			id := r.reaches(trigger.Working).Session
			var posts atomic.Int64
			r.place.failing(kept, func(method, path string) int {
				if method == http.MethodPost {
					posts.Add(1)
					return http.StatusBadGateway
				}
				return 0
			})
			r.says(id, "Done.")
			var d trigger.Delivery
			for d = r.reaches(trigger.Working); d.NextAt.IsZero(); d = r.reaches(trigger.Working) {
			}
			if d.Posting == 0 || d.Attempts != 1 || d.Reason == "" {
				t.Errorf("%+v", d)
			}
			stop()
			r.place.failing(false, nil)
			d.NextAt = d.CreatedAt // its time has come
			if err := r.db.Triggers().Settle(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			r.again()
			r.run()
			r.reaches(trigger.Answered)
			if said := r.place.said("7"); len(said) != 1 || posts.Load() != 1 {
				t.Errorf("%d attempts failed, and there are %q", posts.Load(), said)
			}
		})
	}
}

// What cannot be begun is said where it was asked for, in plain words; a provider
// that does not answer is asked again.
func TestFailures(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	in, secret := r.add("maria", "gitea", trigger.Change{})
	r.refuse = func(string) error { return &trigger.RefusedError{Msg: "Settings not found"} }
	r.run()
	r.told(deliver(t, "gitea", inGitea.comment, "1"), secret)
	if d := r.reaches(trigger.Failed); d.Reason != "Settings not found" || d.Task != nil {
		t.Errorf("%+v", d)
	}
	if said := <-r.place.posted; !strings.HasPrefix(said, "I could not start working on this: Settings not found") {
		t.Errorf("%q", said)
	}
	r.place.failing(false, func(string, string) int { return http.StatusServiceUnavailable })
	r.told(deliver(t, "gitea", inGitea.comment, "2", "TEXT", "@deckhand once more"), secret)
	if d := r.reaches(trigger.Waiting); d.Attempts != 1 || !d.NextAt.After(d.CreatedAt) || !strings.Contains(d.Reason, "is not responding correctly") {
		t.Errorf("%+v", d)
	}
	r.place.failing(false, func(string, string) int { return http.StatusNotFound })
	r.told(deliver(t, "gitea", inGitea.comment, "3", "TEXT", "@deckhand no more"), secret)
	if d := r.reaches(trigger.Failed); !strings.Contains(d.Reason, "Not found on") {
		t.Errorf("%+v", d)
	}
	// A token for another host is never shown.
	elsewhere := "elsewhere.example.org"
	if _, _, err := r.integrations.Change(t.Context(), "maria", in.ID, trigger.Change{Host: &elsewhere}); err != nil {
		t.Fatal(err)
	}
	r.told(deliver(t, "gitea", inGitea.comment, "4", "TEXT", "@deckhand there"), secret)
	if d := r.reaches(trigger.Failed); !strings.Contains(d.Reason, "another host") {
		t.Errorf("%+v", d)
	}
}

// A session that fails to start has an answer too.
func TestFailedStartIsAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, secret := r.add("maria", "gitea", trigger.Change{})
	r.run()
	r.told(deliver(t, "gitea", inGitea.comment, "1"), secret)
	id := r.reaches(trigger.Working).Session
	if _, err := r.sessions.Update(t.Context(), id, func(s session.State) ([]session.Payload, error) {
		return []session.Payload{session.Claimed{By: "test"}, session.Failed{ID: "STATUS$ERROR", Reason: "The repository cannot be cloned."}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	r.reaches(trigger.Answered)
	if said := r.place.said("7"); len(said) != 1 || !strings.HasPrefix(said[0], "I could not continue: The repository cannot be cloned.\n") {
		t.Errorf("%q", said)
	}
}

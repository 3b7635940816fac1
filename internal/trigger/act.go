package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/idempotency"
	"deckhand/internal/queue"
	"deckhand/internal/session"
)

func itoa(n int) string { return strconv.Itoa(n) }

// act tells the agent of a delivery, and records that, or why not.
func (w *Worker) act(ctx context.Context, d Delivery) {
	in, err := w.Inbox.Integration(ctx, d.Integration)
	if errors.Is(err, ErrNotFound) {
		return // it is gone, and the delivery with it
	}
	var t task
	var j *job
	if err == nil {
		err = json.Unmarshal(d.Task, &t)
	}
	if err == nil {
		j = &job{Worker: w, in: in, d: d, t: t}
		limited, cancel := context.WithTimeout(ctx, stepTime)
		err = j.run(limited)
		cancel()
		d = j.d
	}
	if ctx.Err() != nil && err != nil {
		return // it is we who broke it off
	}
	log := w.Logger.With("integration", d.Integration, "delivery", d.ID, "user", in.User)
	switch {
	case err == nil && d.State == Working:
		d.Task, d.Reason, d.Attempts, d.NextAt = nil, "", 0, time.Time{}
		w.settle(ctx, d)
		w.await(d.Session)
		log.Info("delivery passed to a conversation", "session", d.Session)
	case err == nil: // there was nothing to do after all
		w.settle(ctx, d.end(d.State, d.Reason))
	case d.again(err):
		log.Debug("cannot process a delivery yet", "error", err)
		w.settle(ctx, d)
	default:
		log.Warn("cannot process a delivery", "error", err)
		w.settle(ctx, d.end(Failed, plainly(err)))
		if j != nil {
			j.apologise(ctx, plainly(err))
		}
	}
}

// end is a delivery about which nothing more is done.
func (d Delivery) end(s State, reason string) Delivery {
	d.State, d.Reason, d.Task, d.NextAt, d.DoneAt = s, reason, nil, time.Time{}, queue.Now()
	return d
}

// How often something is tried. The delays grow from 5 s to an hour.
const (
	maxTries   = 9
	firstDelay = 5 * time.Second
	maxDelay   = time.Hour
	growth     = 4
)

// again arranges for another attempt, if one can help. A full queue is waited for as long as it takes.
func (d *Delivery) again(err error) bool {
	if busy, ok := errors.AsType[*BusyError](err); ok {
		d.Reason, d.NextAt = busy.Msg, queue.Now().Add(max(busy.After, firstDelay))
		return true
	}
	var refused *RefusedError
	reason := gitprovider.ReasonOf(err)
	final := errors.As(err, &refused) || reason != "" && reason != gitprovider.Unavailable && reason != gitprovider.RateLimited
	if d.Attempts++; final || d.Attempts >= maxTries {
		return false
	}
	wait := firstDelay
	for range d.Attempts - 1 {
		wait = min(wait*growth, maxDelay)
	}
	if e, ok := errors.AsType[*gitprovider.Error](err); ok {
		wait = max(wait, min(e.RetryAfter, maxDelay))
	}
	d.Reason, d.NextAt = plainly(err), queue.Now().Add(wait)
	return true
}

// plainly is what people are told of an error. What is none of their business
// is in the log.
func plainly(err error) string {
	var refused *RefusedError
	switch e, ok := errors.AsType[*gitprovider.Error](err); {
	case ok:
		return e.Message
	case errors.As(err, &refused):
		return refused.Msg
	case errors.Is(err, context.DeadlineExceeded):
		return "The provider did not respond in time."
	}
	return "Internal server error. See the server log."
}

// job is one delivery being dealt with.
type job struct {
	*Worker
	in Integration
	d  Delivery
	t  task
	// forge is the provider, once it was needed.
	forge gitprovider.Provider
	// fork is true for a pull request from a fork, once it was read.
	fork bool
}

// key is the name of the message, wherever it is said.
func (j *job) key() string { return idempotency.Digest("trigger", j.d.Integration, j.d.ID, j.d.Print) }

// run brings the delivery to the agent.
func (j *job) run(ctx context.Context) error {
	// What an earlier attempt created is recognised by its name.
	made := session.ID(j.key()[:32])
	row, err := j.Index.Row(ctx, made)
	switch {
	case err == nil && row.Owner != j.in.User:
		return &RefusedError{Msg: "The conversation cannot be created: its ID is already in use."}
	case err == nil && row.Deleted:
		j.d.State, j.d.Session, j.d.Reason = Ignored, made, "The conversation was deleted."
		return nil
	case err == nil:
		st, err := j.Sessions.Load(ctx, made)
		if err == nil {
			j.told(made, st)
		}
		return err
	case !errors.Is(err, session.ErrNotFound):
		return err
	}
	id, err := j.conversation(ctx)
	if err != nil {
		return err
	}
	if id == "" {
		if admitted, err := j.labelled(ctx); err != nil || !admitted {
			return err
		}
		return j.start(ctx, made)
	}
	if !j.t.Comment {
		j.d.State, j.d.Session, j.d.Reason = Ignored, id, "The issue already has a conversation."
		return nil
	}
	said := session.UserSaid{Text: j.asked().Again(), Key: j.key(), Automated: true}
	st, err := j.Say(ctx, j.in.User, id, said)
	switch {
	case errors.Is(err, session.ErrDeleted), errors.Is(err, session.ErrNotFound): // this moment
		return j.start(ctx, made)
	case err != nil:
		return refused(err)
	}
	j.told(id, st)
	return nil
}

func (j *job) told(id session.ID, st session.State) {
	j.d.State, j.d.Session, j.d.Said = Working, id, st.LastSaid
}

// conversation is the one that the thread has, "" if it has none (any more). A
// pull request has the one that it was opened in.
func (j *job) conversation(ctx context.Context) (session.ID, error) {
	id, err := j.Inbox.SessionOf(ctx, j.in.ID, j.d.Thread)
	if err != nil {
		return "", err
	}
	if id != "" {
		row, err := j.Index.Row(ctx, id)
		if err == nil && !row.Deleted {
			return id, nil
		}
		if err != nil && !errors.Is(err, session.ErrNotFound) {
			return "", err
		}
	}
	if !j.d.Pull {
		return "", nil
	}
	return j.openedIn(ctx)
}

// searched is how many of a user's conversations on a repository are looked
// through for the one that opened a pull request.
const searched = 500

func (j *job) openedIn(ctx context.Context) (session.ID, error) {
	rows, err := j.Index.Rows(ctx, session.Query{Owner: j.in.User, Repository: j.d.Repository, Limit: searched})
	if err != nil {
		return "", err
	}
	for _, row := range rows {
		for _, r := range row.Requests {
			if r.Provider == j.in.Provider && r.Number == j.d.Number && strings.EqualFold(r.Repository, j.d.Repository) {
				return row.ID, nil
			}
		}
	}
	return "", nil
}

// asked is what the agent is told, as far as the delivery says it.
func (j *job) asked() gitprovider.Asked {
	a := gitprovider.Asked{Provider: j.in.Provider, Repository: j.d.Repository, Number: j.d.Number, Pull: j.d.Pull,
		Title: j.t.Title, URL: j.t.URL, By: j.t.Actors[0], Nonce: j.key()[32:44]}
	if j.t.Comment {
		a.Request = j.t.Text
	}
	return a
}

// labelled is false, and the delivery ignored, if a user without permission added the issue's
// label and the actors only added another one.
func (j *job) labelled(ctx context.Context) (bool, error) {
	if j.t.Label == "" || slices.Contains(j.in.AllowedUsers, AllUsers) {
		return true, nil
	}
	forge, err := j.open(ctx)
	if err != nil {
		return false, err
	}
	who, ok := forge.(gitprovider.Labeller)
	if !ok {
		return true, nil
	}
	by, err := who.LabelledBy(ctx, j.d.Repository, j.d.Number, j.t.Label)
	if err != nil || j.in.admits(gitprovider.Present(by)) {
		return err == nil, err
	}
	j.d.State, j.d.Reason = Ignored, "The user who added the label is not in allowed_users."
	return false, nil
}

// start creates a conversation.
func (j *job) start(ctx context.Context, id session.ID) error {
	a, branch, err := j.look(ctx)
	if err != nil {
		return err
	}
	outside, err := j.outside(ctx)
	if err != nil {
		return err
	}
	s := Start{Outside: outside, ID: id, User: j.in.User, Provider: j.in.Provider, Repository: j.d.Repository, Branch: branch, Key: j.key()}
	a.Branch = branch
	s.Text = a.Prompt()
	err = j.Start(ctx, s)
	if refused, ok := errors.AsType[*RefusedError](err); ok && refused.Branch && branch != "" {
		// The branch is in a fork, or gone: the agent finds the commits in another way.
		s.Branch, a.Branch = "", ""
		s.Text = a.Prompt()
		err = j.Start(ctx, s)
	}
	if err != nil {
		return err
	}
	st, err := j.Sessions.Load(ctx, id)
	if err == nil {
		j.told(id, st)
	}
	return err
}

// look reads the issue, or the pull request and its branch.
func (j *job) look(ctx context.Context) (gitprovider.Asked, string, error) {
	a, branch := j.asked(), ""
	forge, err := j.open(ctx)
	if err != nil {
		return a, "", err
	}
	var issue gitprovider.Issue
	if j.d.Pull {
		if branch = j.t.Branch; branch == "" {
			request, err := forge.Request(ctx, j.d.Repository, j.d.Number)
			if err != nil {
				return a, "", err
			}
			branch, j.fork = request.Source, request.Fork
		}
		issue, err = forge.Discussion(ctx, j.d.Repository, j.d.Number)
	} else {
		issue, err = forge.Issue(ctx, j.d.Repository, j.d.Number)
	}
	if err != nil {
		return a, "", err
	}
	a.Title, a.Author, a.Text, a.Before = issue.Title, issue.Author, issue.Body, issue.Comments
	if a.URL == "" {
		a.URL = issue.URL
	}
	if !gitprovider.ValidBranch(branch) {
		branch = ""
	}
	return a, branch, nil
}

// outside says whether an outsider asks, or wrote what is asked about. Who cannot
// be told to have write access has none.
func (j *job) outside(ctx context.Context) (session.Outside, error) {
	if j.fork {
		return session.OutsideFork, nil
	}
	forge, err := j.open(ctx)
	if err != nil {
		return "", err
	}
	me, err := forge.User(ctx)
	if later(err) {
		return "", err
	}
	who := j.t.Actors[0]
	if err == nil && (slices.Contains(j.t.Actors, me.Login) || slices.Contains(j.t.Actors, me.ID)) {
		who = ""
	}
	may, err := gitprovider.CanPush(ctx, forge, j.d.Repository, who)
	switch {
	case later(err):
		return "", err
	case !may:
		return session.OutsideActor, nil
	}
	return "", nil
}

// later is true for an error that may be gone at the next attempt.
func later(err error) bool {
	reason := gitprovider.ReasonOf(err)
	return err != nil && (reason == "" || reason == gitprovider.Unavailable || reason == gitprovider.RateLimited)
}

// open opens the provider that the integration is with.
func (j *job) open(ctx context.Context) (gitprovider.Provider, error) {
	if j.forge != nil {
		return j.forge, nil
	}
	forge, host, err := j.Forge(ctx, j.in.User, j.in.Provider)
	if err != nil {
		return nil, err
	}
	if !sameHost(j.in.Provider, host, j.in.Host) {
		return nil, &RefusedError{Msg: "The stored token for " + j.in.Provider + " belongs to another host than the integration."}
	}
	j.forge = forge
	return forge, nil
}

// sameHost compares hosts as people write them; "" is the provider's own.
func sameHost(provider, a, b string) bool {
	x, errX := gitprovider.Site(provider, a)
	y, errY := gitprovider.Site(provider, b)
	return a == b || errX == nil && errY == nil && x.String() == y.String()
}

// apologise tells people that nothing will come of what they asked for. It is
// tried once: who waits in vain finds the reason in the list of deliveries too.
func (j *job) apologise(ctx context.Context, reason string) {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	forge, err := j.open(ctx)
	if err == nil {
		text := "I could not start working on this: " + reason
		err = forge.Comment(ctx, j.d.Repository, j.d.Number, j.d.Pull, gitprovider.Sign(text, "delivery"))
	}
	if err != nil {
		j.complain(ctx, "cannot report an error to the provider", err)
	}
}

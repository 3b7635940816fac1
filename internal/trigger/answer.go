package trigger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"deckhand/internal/clip"
	"deckhand/internal/gitprovider"
	"deckhand/internal/queue"
	"deckhand/internal/session"
)

// answer posts what the agent said, below every issue that it was asked in, if
// it is done. It also serves to look again after a failure.
func (w *Worker) answer(ctx context.Context, id session.ID, c queue.Claim) {
	told := w.timesTold(id)
	found, err := w.Inbox.AtWork(ctx, id)
	if err != nil {
		w.complain(ctx, "cannot read deliveries", err)
		if queue.Pause(ctx) {
			w.await(id)
		}
		return
	}
	if len(found) == 0 {
		w.forget(id, told)
		return
	}
	for i := range found {
		found[i].Claim = c
	}
	st, err := w.Sessions.Load(ctx, id)
	switch {
	case errors.Is(err, session.ErrNotFound) || err == nil && st.Deleted:
		w.settle(ctx, ended(found, Failed, "The conversation was deleted before the agent replied.")...)
		w.forget(id, told)
	case err != nil:
		w.complain(ctx, "cannot read a conversation", err)
		if queue.Pause(ctx) {
			w.await(id)
		}
	case st.Busy():
		w.rest(ctx, found)
	default:
		left := false
		for _, group := range byAnswer(found) {
			left = !w.post(ctx, st, group) || left
		}
		if !left {
			w.forget(id, told)
		}
	}
}

// timesTold is how often a conversation was told something.
func (w *Worker) timesTold(id session.ID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.awaited[id]
}

// forget stops watching a conversation, unless something new happened in it: then it is checked
// once more. told is from before its deliveries were read, so that a newer delivery is not
// dropped with the others.
func (w *Worker) forget(id session.ID, told int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.grown[id] && w.awaited[id] == told {
		delete(w.awaited, id)
	}
}

// rest forgets about attempts that were to be made: the agent is at work again.
func (w *Worker) rest(ctx context.Context, ds []Delivery) {
	var changed []Delivery
	for _, d := range ds {
		if !d.NextAt.IsZero() {
			d.NextAt = time.Time{}
			changed = append(changed, d)
		}
	}
	if len(changed) > 0 {
		w.settle(ctx, changed...)
	}
}

func ended(ds []Delivery, s State, reason string) []Delivery {
	out := make([]Delivery, len(ds))
	for i, d := range ds {
		out[i] = d.end(s, reason)
	}
	return out
}

// byAnswer puts together what one comment answers: what was asked in the same
// place, but for what a comment may be about that was tried before.
func byAnswer(ds []Delivery) [][]Delivery {
	var out [][]Delivery
	for _, d := range ds {
		i := slices.IndexFunc(out, func(g []Delivery) bool { return threadOf(g[0]) == threadOf(d) && g[0].Posting == d.Posting })
		if i < 0 {
			out = append(out, nil)
			i = len(out) - 1
		}
		out[i] = append(out[i], d)
	}
	return out
}

// post writes the answer as a comment on one issue, once. Which answer it is gets recorded
// before the attempt; a later attempt that finds the record first checks whether the comment
// exists. False if it must be tried again.
func (w *Worker) post(ctx context.Context, st session.State, ds []Delivery) bool {
	if ds[0].NextAt.After(time.Now()) {
		return false // it was tried and failed, and its time has not come
	}
	err := w.tryPost(ctx, st, ds)
	log := w.Logger.With("integration", ds[0].Integration, "session", st.ID)
	switch {
	case err == nil:
		w.settle(ctx, ended(ds, Answered, "")...)
		return true
	case ctx.Err() != nil:
		return false
	case !ds[0].again(err):
		log.Warn("cannot post a reply", "error", err)
		w.settle(ctx, ended(ds, Failed, "The reply could not be posted. "+plainly(err))...)
		return true
	}
	log.Debug("cannot post a reply yet", "error", err)
	for i := range ds {
		ds[i].Attempts, ds[i].NextAt, ds[i].Reason = ds[0].Attempts, ds[0].NextAt, ds[0].Reason
	}
	w.settle(ctx, ds...)
	return false
}

func (w *Worker) tryPost(ctx context.Context, st session.State, ds []Delivery) error {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	in, err := w.Inbox.Integration(ctx, ds[0].Integration)
	if err != nil {
		return err
	}
	j := &job{Worker: w, in: in, d: ds[0]}
	forge, err := j.open(ctx)
	if err != nil {
		return err
	}
	before := ds[0].Posting
	if before != 0 {
		stands, err := j.stands(ctx, forge, mark(st.ID, before))
		if err != nil || stands {
			return err
		}
	}
	words, number, err := w.lastWords(ctx, st, ds[0].Said, before)
	if err != nil {
		return err
	}
	if before == 0 {
		for i := range ds {
			ds[i].Posting = number
		}
		if err := w.Inbox.Settle(ctx, ds...); err != nil {
			return err
		}
	}
	return forge.Comment(ctx, j.d.Repository, j.d.Number, j.d.Pull, w.comment(in, st.ID, words, number))
}

// mark names an answer.
func mark(id session.ID, number int64) string { return fmt.Sprintf("%s %d", id, number) }

// stands is true if the answer is there already.
func (j *job) stands(ctx context.Context, forge gitprovider.Provider, m string) (bool, error) {
	read := forge.Issue
	if j.d.Pull {
		read = forge.Discussion
	}
	issue, err := read(ctx, j.d.Repository, j.d.Number)
	return slices.ContainsFunc(issue.Comments, func(c string) bool { return strings.Contains(c, gitprovider.Mark(m)) }), err
}

// maxAnswer is what every provider takes, with something to spare.
const maxAnswer = 30_000

// comment is the answer as it is posted.
func (w *Worker) comment(in Integration, id session.ID, words string, number int64) string {
	if len(words) > maxAnswer {
		words = clip.Start(words, maxAnswer) + "\n\n[…]"
	}
	if fence := openFence(words); fence != "" {
		words += "\n" + fence
	}
	below := "Mention `" + in.Mention + "` to continue."
	if page := w.Page(id); page != "" {
		below = "[Conversation](" + page + ") · " + below
	}
	return gitprovider.Sign(words+"\n\n---\n"+below, mark(id, number))
}

// lastWords is what the agent said last since a message and until an event (0:
// until now), or why it said nothing, and the number of the event with which it
// was done.
func (w *Worker) lastWords(ctx context.Context, st session.State, since, until int64) (words string, number int64, err error) {
	for e, err := range w.Log.Read(ctx, st.ID, since) {
		if err != nil {
			return "", 0, err
		}
		if until != 0 && e.Number > until {
			break
		}
		switch p := e.Payload.(type) {
		case session.ModelAnswered:
			if p.Purpose == "" && strings.TrimSpace(p.Text) != "" {
				words = p.Text
			}
		case session.ToolReturned:
			if p.Ends && strings.TrimSpace(p.Output) != "" {
				words = p.Output
			}
		case session.TurnEnded, session.Failed, session.Stopped:
			number = e.Number
		}
	}
	words = strings.TrimSpace(words)
	switch {
	case st.ErrorID != "":
		words = strings.TrimSpace(words + "\n\nI could not continue: " + strings.TrimRight(cmp.Or(st.Reason, "something went wrong"), ".") + ".")
	case words == "" && st.Stopped:
		words = "The conversation was stopped before I could reply."
	case words == "":
		words = "I am done."
	}
	return words, max(number, 1), nil
}

package agent

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"deckhand/internal/agent/history"
	"deckhand/internal/clip"
	"deckhand/internal/llm"
	"deckhand/internal/session"
)

//go:embed title.md
var titlePrompt string

// What a call for a title may take: bytes of the conversation, and tokens of the answer.
const (
	titleInput  = 4 << 10
	titleOutput = 512
)

// entitle asks the model for a title after the first turn, if the budget allows it. A new message takes
// precedence. A call that was interrupted or has failed is made again after the next turn, but not for long: the
// first words of the task are a title, too.
func (l *Loop) entitle(ctx context.Context, w *worker, st session.State, p Profile, t *transcript) (session.State, error) {
	if !p.Title || !st.Untitled() || st.Claim != w.claim {
		return st, nil
	}
	if err := t.advance(ctx, l.Log, st); err != nil {
		return st, err
	}
	p = p.with(p.Small)
	req := llm.Request{Model: p.ModelName, System: strings.TrimSpace(titlePrompt), MaxOutput: min(answerLimit(p.Info), titleOutput), Conversation: string(w.id),
		Messages: []llm.Message{{Role: llm.User, Text: "Task: " + clip.Middle(t.firstText, titleInput/2) + "\n\n" + digest(t.messages, titleInput/2)}}}
	worst := cost(llm.Price{Input: max(p.Info.Price.Input, p.Info.Price.CacheWrite), Output: p.Info.Price.Output},
		llm.Usage{Input: int64(len(req.System)+len(req.Messages[0].Text)) + 1000, Output: req.MaxOutput})
	st, err := l.update(ctx, w, func(s session.State) ([]session.Payload, error) {
		return s.AskTitle(w.claim, session.ModelAsked{Call: fmt.Sprintf("m%d", s.Last+1), Model: p.ModelName, Reserved: worst}, p.Budget)
	})
	if err != nil { // a person was faster, or there is no money for it
		return l.Sessions.Load(ctx, w.id)
	}
	call := st.Ask.Call
	a, err := func() (answer, error) {
		ctx, stop := l.while(ctx, w, func(st session.State) bool { return st.Ask != nil && st.Ask.Call == call && !st.Pending() })
		defer stop()
		return l.hear(ctx, p.Model, req, func([]byte) {})
	}()
	st, err = l.update(ctx, w, func(s session.State) ([]session.Payload, error) {
		if s.Ask == nil || s.Ask.Call != call || s.Claim != w.claim { // settled by a person
			return nil, nil
		}
		if err != nil {
			e := failure(err)
			return s.AskFailed(w.claim, call, string(e.Class), p.mask(e.Message), spent(e, s.Reserved), false)
		}
		return s.Answered(w.claim, session.ModelAnswered{Call: call, Text: p.mask(a.text), Cost: cost(p.Info.Price, a.done.Usage), Usage: session.Usage(a.done.Usage)})
	}, func(s session.State) ([]session.Payload, error) {
		if err != nil || s.Claim != w.claim {
			return nil, nil
		}
		return s.Suggest(w.claim, session.TitleFrom(history.Bare(p.mask(a.text))))
	})
	return st, err
}

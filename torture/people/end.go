//go:build linux

package people

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/torture/check"
)

// End checks the money of all users and that deleted conversations stay deleted, and deletes
// the rest. billed is what the model charged a key.
func (c *Crowd) End(ctx context.Context, billed func(key string) float64) {
	c.mu.Lock()
	kept, gone := c.kept, c.deleted
	c.kept = nil
	c.mu.Unlock()
	for _, t := range kept {
		t.again(ctx)
	}
	var accounts []check.Account
	for _, u := range c.users {
		var usage api.Usage
		err := c.do(ctx, u, func(ctx context.Context, cl *client.Client) (err error) { usage, err = cl.Usage(ctx, ""); return err })
		if err != nil {
			c.OnViolation(check.Refused("", "the usage of "+u.name, err), nil)
			continue
		}
		a := check.Account{User: u.name, Reserved: usage.Reserved, Conversations: c.cost[u.name], Billed: billed(u.modelKey)}
		for _, m := range usage.Months {
			a.Spent += m.Spent
		}
		if usage.Limit != nil {
			a.Limit = *usage.Limit
		}
		accounts = append(accounts, a)
	}
	for _, v := range check.Accounts(accounts) {
		c.OnViolation(v, nil)
	}
	for _, t := range kept {
		t.delete(ctx)
	}
	for _, d := range gone {
		err := c.do(ctx, d.u, func(ctx context.Context, cl *client.Client) error { _, err := cl.Conversation(ctx, d.id); return err })
		if !client.IsNotFound(err) {
			c.OnViolation(check.Violation{Rule: check.RuleDeleted, Conversation: d.id, Detail: fmt.Sprintf("GET answers %v", err)}, nil)
		}
	}
	c.nothingListed(ctx)
}

// again reads the log of a conversation that was checked before: it must not have changed
// except for events that were added.
func (t *conversation) again(ctx context.Context) {
	now, err := t.crowd.log(ctx, t.u, t.id)
	if err != nil {
		t.crowd.OnViolation(t.violation(err), nil)
		return
	}
	old := t.followers[0].history()
	for i, s := range old.Saw {
		if i >= len(now) || now[i].ID != s.ID || now[i].Raw != s.Raw {
			t.crowd.OnViolation(check.Violation{Rule: check.RuleNumbers, Conversation: t.id, Detail: fmt.Sprintf("event %d is not what it was: %s", s.ID, s.Raw)}, nil)
			return
		}
	}
}

func (c *Crowd) nothingListed(ctx context.Context) {
	for _, u := range c.users {
		var page api.ConversationPage
		err := c.do(ctx, u, func(ctx context.Context, cl *client.Client) (err error) {
			page, err = cl.Conversations(ctx, url.Values{"limit": {"20"}})
			return err
		})
		for _, one := range page.Results {
			c.OnViolation(check.Violation{Rule: check.RuleDeleted, Conversation: one.ConversationID, Detail: "it is still listed"}, nil)
		}
		if err != nil {
			c.OnViolation(check.Refused("", "the list of "+u.name, err), nil)
		}
	}
}

// Prober writes to one conversation all the time, so that it is known when writes are accepted.
type Prober struct {
	talk *conversation

	mu      sync.Mutex
	success time.Time // when the last accepted write began
	moved   chan struct{}
	writes  int
}

// NewProber makes the conversation. Its task is to say nothing.
func (c *Crowd) NewProber(ctx context.Context) (*Prober, error) {
	t := &conversation{crowd: c, u: c.users[len(c.users)-1], id: "torture-probe", said: map[string]int64{}, changed: make(chan struct{})}
	_, err := c.client(t.u.key, 0).Create(ctx, api.CreateConversation{ConversationID: api.Some(t.id)})
	return &Prober{talk: t, moved: make(chan struct{})}, err
}

// Run writes until ctx ends.
func (p *Prober) Run(ctx context.Context) {
	t := p.talk
	for n := 0; ctx.Err() == nil; n++ {
		title := fmt.Sprintf("probe %d", n)
		begin := time.Now()
		one, stop := context.WithTimeout(ctx, 2*time.Second)
		t.crowd.Requests.Add(1)
		err := t.crowd.client(t.u.key, n).Rename(one, t.id, title)
		stop()
		t.requests = append(t.requests, check.Request{Kind: check.Rename, Text: title, Acked: err == nil})
		if err == nil {
			t.crowd.Acknowledged.Add(1)
			p.mu.Lock()
			p.success = begin
			p.writes++
			close(p.moved)
			p.moved = make(chan struct{})
			p.mu.Unlock()
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// Recovered waits until a write that began after from was accepted, and returns how long that took.
func (p *Prober) Recovered(ctx context.Context, from time.Time) (time.Duration, bool) {
	for {
		p.mu.Lock()
		success, moved := p.success, p.moved
		p.mu.Unlock()
		if success.After(from) {
			return time.Since(from), true
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return 0, false
		}
	}
}

// Check checks the conversation of the prober when Run has ended, and deletes it.
func (p *Prober) Check(ctx context.Context) {
	if err := p.talk.finish(ctx); err != nil {
		p.talk.crowd.OnViolation(p.talk.violation(err), nil)
	}
	p.talk.delete(ctx)
}

//go:build linux

package people

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/torture/check"
)

const (
	// tryTime bounds one attempt of a request: a stopped server never answers.
	tryTime = 8 * time.Second
	// patience bounds all attempts of a request, and the wait for the end of a turn. It only ends a hang.
	patience = 5 * time.Minute
)

// Crowd is all users with their conversations.
type Crowd struct {
	// Bases are the URLs of the servers.
	Bases []string
	// OnViolation is called when a rule is broken. It may be called concurrently.
	OnViolation func(check.Violation, *check.Conversation)

	users []*user
	http  *http.Client
	next  atomic.Int64

	// Counts for the report.
	Requests, Acknowledged, Retries, Events, Commands, Unknown, Conversations, Turns, Failed, Cuts atomic.Int64

	mu        sync.Mutex
	followers map[*follower]bool
	cost      map[string]float64 // of conversations, by user
	kept      []*conversation    // conversations that are deleted at the end only
	deleted   []deleted
}

type user struct {
	name, key, modelKey string
	limit               float64
}

type deleted struct {
	u  *user
	id string
}

// New makes the users on a server, with a model each. Nothing is broken yet.
func New(ctx context.Context, bases []string, admin, model, modelURL string, users int) (*Crowd, error) {
	c := &Crowd{Bases: bases, followers: map[*follower]bool{}, cost: map[string]float64{}}
	// A connection is used once: one to a server that was killed would only fail.
	c.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	boss := c.client(admin, 0)
	for i := range users {
		u := &user{name: fmt.Sprintf("user%d", i), modelKey: fmt.Sprintf("sk-torture-%d", i)}
		made, err := boss.CreateKey(ctx, api.CreateKey{User: api.Some(u.name)})
		if err != nil {
			return nil, err
		}
		u.key = made.Secret
		in := api.SettingsInput{LLMModel: api.Some(model), LLMAPIKey: api.Some(u.modelKey), LLMBaseURL: api.Some(modelURL)}
		if i == 0 { // lost calls use up a small budget
			u.limit = 0.4
			in.MaxBudgetPerTask = api.Some(u.limit)
		}
		if _, err := c.client(u.key, 0).StoreSettings(ctx, in); err != nil {
			return nil, err
		}
		c.users = append(c.users, u)
	}
	return c, nil
}

// client is a client of one of the servers.
func (c *Crowd) client(key string, server int) *client.Client {
	out := client.New(c.Bases[server%len(c.Bases)], key)
	out.HTTP = c.http
	return out
}

// do makes a request until it is acknowledged. Refusals that a retry cannot change are
// returned. Each attempt goes to another server, if there are several.
func (c *Crowd) do(ctx context.Context, u *user, f func(context.Context, *client.Client) error) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	c.Requests.Add(1)
	at := int(c.next.Add(1))
	delay := 20 * time.Millisecond
	for {
		one, end := context.WithTimeout(ctx, tryTime)
		err := f(one, c.client(u.key, at))
		end()
		if err == nil {
			c.Acknowledged.Add(1)
			return nil
		}
		var refused *client.Error
		if errors.As(err, &refused) && refused.Status < 500 && refused.Status != http.StatusTooManyRequests {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no acknowledgement within %v: %w", patience, err)
		case <-time.After(delay):
		}
		c.Retries.Add(1)
		delay = min(2*delay, 500*time.Millisecond)
		at++
	}
}

// follow starts a follower.
func (c *Crowd) follow(ctx context.Context, wait *sync.WaitGroup, u *user, id, name string, from int64, random *rand.Rand, on func(check.Event)) *follower {
	at := int(c.next.Add(1))
	f := &follower{name: name, from: from, random: random, room: leastBytes, on: on, moved: make(chan struct{})}
	f.ask = func(ctx context.Context, after int64) (*http.Response, error) {
		at++
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Bases[at%len(c.Bases)]+"/api/conversations/"+id+"/events/stream?format=deckhand", nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("X-Session-API-Key", u.key)
		req.Header.Set("Last-Event-ID", strconv.FormatInt(after, 10))
		res, err := c.http.Do(req)
		if err == nil && res.StatusCode != http.StatusOK {
			res.Body.Close()
			err = fmt.Errorf("the stream was refused: %d", res.StatusCode)
		}
		return res, err
	}
	c.mu.Lock()
	c.followers[f] = true
	c.mu.Unlock()
	wait.Go(func() {
		f.run(ctx)
		c.Cuts.Add(int64(f.cuts))
		c.mu.Lock()
		delete(c.followers, f)
		c.mu.Unlock()
	})
	return f
}

// Drop cuts the connections of all followers and returns how many.
func (c *Crowd) Drop() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.followers {
		f.drop()
	}
	return len(c.followers)
}

// eventOf decodes an event. One that cannot be decoded has no number, which breaks a rule.
func eventOf(raw []byte) check.Event {
	var e check.Event
	_ = json.Unmarshal(raw, &e)
	e.Raw = canonical(raw)
	return e
}

// canonical spells JSON in one way: pages and streams escape different characters.
func canonical(raw []byte) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return string(raw)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(out)
}

// log reads all events of a conversation.
func (c *Crowd) log(ctx context.Context, u *user, id string) ([]check.Event, error) {
	var out []check.Event
	for next, more := int64(0), true; more; {
		var page struct {
			Events  []json.RawMessage `json:"events"`
			HasMore bool              `json:"has_more"`
		}
		err := c.do(ctx, u, func(ctx context.Context, cl *client.Client) error {
			got, err := cl.LegacyEvents(ctx, id, url.Values{"format": {"deckhand"}, "start_id": {strconv.FormatInt(next, 10)}, "limit": {"100"}})
			page.Events, page.HasMore = got.Events, got.HasMore
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, raw := range page.Events {
			out = append(out, eventOf(raw))
		}
		if more = page.HasMore && len(out) > 0; more {
			next = out[len(out)-1].ID + 1
		}
	}
	return out, nil
}

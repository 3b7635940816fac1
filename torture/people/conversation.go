//go:build linux

package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/torture/check"
	"deckhand/torture/world"
)

// conversation is one conversation with its followers.
type conversation struct {
	crowd  *Crowd
	u      *user
	id     string
	random *rand.Rand

	requests  []check.Request
	followers []*follower
	wait      sync.WaitGroup
	end       context.CancelFunc // of the followers

	mu      sync.Mutex
	said    map[string]int64 // numbers of messages by their text
	read    int64            // the last turn handled events up to this one
	halted  int64            // the last stop or failure
	changed chan struct{}
}

// Converse has one conversation after the other until ctx ends. The one in progress is
// finished, and checked, within the context whole.
func (c *Crowd) Converse(ctx, whole context.Context, person int, seed uint64) {
	random := rand.New(rand.NewPCG(seed, uint64(person)))
	for n := 0; ctx.Err() == nil; n++ {
		talk := &conversation{
			crowd: c, u: c.users[person%len(c.users)], id: fmt.Sprintf("torture-%d-%d", person, n), random: random,
			said: map[string]int64{}, changed: make(chan struct{}),
		}
		talk.run(whole, n%8 == 7)
	}
}

// run has the whole conversation, checks it and deletes it, at once or at the end.
func (t *conversation) run(ctx context.Context, keep bool) {
	following, end := context.WithCancel(ctx)
	t.end = end
	err := t.talk(ctx, following)
	if err == nil {
		err = t.finish(ctx)
	}
	end()
	t.wait.Wait()
	if err != nil && ctx.Err() == nil {
		t.crowd.OnViolation(t.violation(err), nil)
		return
	}
	t.crowd.Conversations.Add(1)
	if keep {
		t.crowd.mu.Lock()
		t.crowd.kept = append(t.crowd.kept, t)
		t.crowd.mu.Unlock()
		return
	}
	t.delete(ctx)
}

// errStuck says that a conversation does not come to rest.
var errStuck = errors.New("the turn does not end")

func (t *conversation) violation(err error) check.Violation {
	var refused *client.Error
	switch {
	case errors.Is(err, errStuck):
		return check.Violation{Rule: check.RuleRest, Conversation: t.id, Detail: err.Error()}
	case errors.As(err, &refused) && refused.Status < 500:
		return check.Refused(t.id, "a request", err)
	}
	return check.Violation{Rule: check.RuleUnavailable, Conversation: t.id, Detail: err.Error()}
}

// talk creates the conversation and has its turns.
func (t *conversation) talk(ctx, following context.Context) error {
	turns := 2 + t.random.IntN(3)
	first := t.task(0)
	request := t.begin(check.Create, first)
	err := t.crowd.do(ctx, t.u, func(ctx context.Context, c *client.Client) error {
		_, err := c.Create(ctx, api.CreateConversation{ConversationID: api.Some(t.id), InitialUserMsg: api.Some(first)})
		return err
	})
	if err != nil {
		return err
	}
	t.acked(request)
	cutter := rand.New(rand.NewPCG(t.random.Uint64(), 1))
	t.followers = append(t.followers, t.crowd.follow(following, &t.wait, t.u, t.id, "the follower whose connection is cut", 0, cutter, t.observe))
	for turn := 1; ; turn++ {
		if turn == 2 {
			from := t.handled()
			t.followers = append(t.followers, t.crowd.follow(following, &t.wait, t.u, t.id, "the follower that came later", from, nil, nil))
		}
		if err := t.interfere(ctx, turn); err != nil {
			return err
		}
		if err := t.await(ctx); err != nil {
			return err
		}
		t.crowd.Turns.Add(1)
		if turn == turns {
			return nil
		}
		if err := t.say(ctx, t.task(turn), turn); err != nil {
			return err
		}
	}
}

// task is the message of a turn.
func (t *conversation) task(turn int) string {
	before, after := time.Duration(0), time.Duration(0)
	if t.random.IntN(2) == 0 {
		before = time.Duration(t.random.Int64N(int64(400 * time.Millisecond)))
		after = time.Duration(t.random.Int64N(int64(400 * time.Millisecond)))
	}
	return world.Task(turn, 1+t.random.IntN(3), before, after)
}

// interfere does something else while the agent works: a second message, a title, a stop.
func (t *conversation) interfere(ctx context.Context, turn int) error {
	switch t.random.IntN(8) {
	case 0:
		return t.say(ctx, t.task(100+turn), 100+turn)
	case 1:
		title := fmt.Sprintf("title %d of %s", turn, t.id)
		request := t.begin(check.Rename, title)
		err := t.crowd.do(ctx, t.u, func(ctx context.Context, c *client.Client) error { return c.Rename(ctx, t.id, title) })
		if err == nil {
			t.acked(request)
		}
		return err
	case 2:
		err := t.crowd.do(ctx, t.u, func(ctx context.Context, c *client.Client) error { _, err := c.Stop(ctx, t.id); return err })
		if err != nil {
			return err
		}
		return t.crowd.do(ctx, t.u, func(ctx context.Context, c *client.Client) error { _, err := c.Start(ctx, t.id); return err })
	}
	return nil
}

func (t *conversation) say(ctx context.Context, text string, turn int) error {
	request := t.begin(check.Say, text)
	err := t.crowd.do(ctx, t.u, func(ctx context.Context, c *client.Client) error {
		return c.Say(ctx, t.id, text, fmt.Sprintf("%s-%d", t.id, turn))
	})
	if err == nil {
		t.acked(request)
	}
	return err
}

func (t *conversation) begin(kind, text string) int {
	t.requests = append(t.requests, check.Request{Kind: kind, Text: text})
	return len(t.requests) - 1
}

func (t *conversation) acked(request int) { t.requests[request].Acked = true }

// observe takes note of an event that a follower saw.
func (t *conversation) observe(e check.Event) {
	t.crowd.Events.Add(1)
	var p struct {
		Text    string
		UpTo    int64 `json:"up_to"`
		State   string
		Outcome string
	}
	_ = json.Unmarshal(e.Payload, &p)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e.Kind {
	case "user_said":
		t.said[p.Text] = e.ID
	case "turn_ended":
		t.read = max(t.read, p.UpTo)
		if p.State == "error" {
			t.crowd.Failed.Add(1)
		}
	case "stopped", "failed":
		t.halted = e.ID
	case "tool_returned":
		t.crowd.Commands.Add(1)
		if p.Outcome == "unknown" {
			t.crowd.Unknown.Add(1)
		}
		return
	default:
		return
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *conversation) handled() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.read
}

// await waits until every acknowledged message was handled.
func (t *conversation) await(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for {
		t.mu.Lock()
		changed, waiting := t.changed, ""
		for _, r := range t.requests {
			if n := t.said[r.Text]; r.Kind != check.Rename && (n == 0 || n > t.read && n > t.halted) {
				waiting = r.Text
			}
		}
		t.mu.Unlock()
		if waiting == "" {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %q was not handled within %v", errStuck, waiting, patience)
		}
	}
}

// finish waits until the agent rests and the followers have seen everything, and checks the history.
func (t *conversation) finish(ctx context.Context) error {
	h, err := t.history(ctx)
	if err != nil {
		return err
	}
	found := check.Of(h)
	for _, v := range found {
		t.crowd.OnViolation(v, &h)
	}
	t.crowd.mu.Lock()
	t.crowd.cost[t.u.name] += h.Cost
	t.crowd.mu.Unlock()
	return nil
}

// history collects everything about the conversation once it has come to rest.
func (t *conversation) history(ctx context.Context) (check.Conversation, error) {
	h := check.Conversation{ID: t.id, Owner: t.u.name, Requests: t.requests, Limit: t.u.limit}
	var now api.Conversation
	err := t.crowd.do(ctx, t.u, func(ctx context.Context, c *client.Client) (err error) {
		now, err = c.Conversation(ctx, t.id)
		return err
	})
	for deadline := time.Now().Add(patience); err == nil && (now.AgentState == "running" || now.AgentState == "loading") && time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
		err = t.crowd.do(ctx, t.u, func(ctx context.Context, c *client.Client) (err error) {
			now, err = c.Conversation(ctx, t.id)
			return err
		})
	}
	if err != nil {
		return h, err
	}
	if err := t.settled(ctx, &h); err != nil {
		return h, err
	}
	for _, f := range t.followers {
		h.Followers = append(h.Followers, f.history())
	}
	return h, nil
}

// settled reads the marks and the log until the conversation does not change any more, and waits
// for the followers. A follower that does not come breaks a rule, which the checker sees.
func (t *conversation) settled(ctx context.Context, h *check.Conversation) error {
	var now api.Conversation
	for before := int64(-1); ; before = now.LastEventID {
		err := t.readMarks(ctx, h) // may start the sandbox, which is an event
		if err == nil {
			h.Log, err = t.crowd.log(ctx, t.u, t.id)
		}
		if err == nil {
			err = t.crowd.do(ctx, t.u, func(ctx context.Context, c *client.Client) (err error) {
				now, err = c.Conversation(ctx, t.id)
				return err
			})
		}
		if err != nil {
			return err
		}
		if len(h.Log) > 0 {
			t.caughtUp(ctx, h.Log[len(h.Log)-1].ID)
		}
		if before == now.LastEventID {
			break
		}
	}
	h.State, h.LastEvent, h.Cost = now.AgentState, now.LastEventID, now.AccumulatedCost
	return nil
}

// readMarks reads what the commands left in the workspace.
func (t *conversation) readMarks(ctx context.Context, h *check.Conversation) error {
	var marks string
	err := t.crowd.do(ctx, t.u, func(ctx context.Context, c *client.Client) (err error) {
		if marks, err = c.ReadFile(ctx, t.id, "marks"); client.IsNotFound(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read the marks: %w", err)
	}
	h.Marks = strings.Fields(marks)
	return nil
}

func (t *conversation) caughtUp(ctx context.Context, to int64) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for _, f := range t.followers {
		for {
			at, moved := f.last()
			if at >= to {
				break
			}
			select {
			case <-moved:
				continue
			case <-ctx.Done():
				return
			}
		}
	}
}

// delete deletes the conversation.
func (t *conversation) delete(ctx context.Context) {
	err := t.crowd.do(ctx, t.u, func(ctx context.Context, c *client.Client) error { return c.Delete(ctx, t.id) })
	if err != nil && !client.IsNotFound(err) && ctx.Err() == nil {
		t.crowd.OnViolation(t.violation(fmt.Errorf("delete: %w", err)), nil)
		return
	}
	t.crowd.mu.Lock()
	t.crowd.deleted = append(t.crowd.deleted, deleted{t.u, t.id})
	t.crowd.mu.Unlock()
}

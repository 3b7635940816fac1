package peers

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"deckhand/internal/load"
)

// deckhand speaks the API of any version of this program, as as many users as a real load has.
type deckhand struct {
	caller
	server *load.Server
	keys   []string
	next   atomic.Int64
}

func newDeckhand(base, key string) API {
	return &deckhand{caller: newCaller(base, key), server: &load.Server{Addr: strings.TrimPrefix(base, "http://"), Key: key}}
}

// users is how many there are: at 50 requests per second each, more than a server of this
// size can answer.
const users = 512

func (d *deckhand) Prepare(_ context.Context, modelURL string) (err error) {
	d.keys, err = d.server.Users(users, load.Settings(load.ModelName, modelURL))
	return err
}

func (d *deckhand) anyKey() string { return d.keys[int(d.next.Add(1))%len(d.keys)] }

func (d *deckhand) Create(ctx context.Context) error {
	return caller{d.client, d.base, d.anyKey()}.call(ctx, "POST", load.Conversations, map[string]string{}, nil)
}

func (d *deckhand) Begin(context.Context) (Conversation, error) {
	c, err := load.Open(d.server.Addr, d.anyKey(), "Say hi.")
	if err != nil {
		if c != nil {
			deckhandTalk{c}.Close()
		}
		return nil, fmt.Errorf("the first turn: %w", err)
	}
	return deckhandTalk{c}, nil
}

type deckhandTalk struct{ *load.Chat }

func (c deckhandTalk) Turn(context.Context) error { return c.Chat.Turn() }

func (c deckhandTalk) Close() {
	c.Chat.Close()
	_ = c.Delete()
}

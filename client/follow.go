package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"deckhand/api"
)

// Item is an event, a delta or a position in the queue; exactly one of the pointers is set.
type Item struct {
	// ID is the number of a stored event, and 0 for the others.
	ID    int64
	Event *api.Event
	Delta *api.Delta
	// Queue is the new position in the queue for a free slot; its Position is 0 when the
	// conversation no longer waits.
	Queue *api.QueuePlace
	// Raw is the JSON as received.
	Raw json.RawMessage
}

// LegacyItem is an Item in the format of the legacy server.
type LegacyItem struct {
	ID     int64
	Event  *api.LegacyEvent
	Status *api.StatusUpdate
	Delta  *api.Delta
	Raw    json.RawMessage
}

// Delays between attempts to reconnect.
const (
	firstDelay = 100 * time.Millisecond
	lastDelay  = 5 * time.Second
)

// Follow yields the events after the given number, then new ones as they happen, each
// exactly once and in order. It reconnects when the connection is lost and continues
// after the last event seen. It ends when ctx ends, when the conversation is deleted, or
// with an error that a retry cannot fix, such as an invalid key or an unknown
// conversation.
func (c *Client) Follow(ctx context.Context, id string, after int64) iter.Seq2[Item, error] {
	return follow(ctx, c, item(id)+"/events/stream?format=deckhand", after, frame.item)
}

// FollowLegacy is Follow in the format of the legacy server.
func (c *Client) FollowLegacy(ctx context.Context, id string, after int64) iter.Seq2[LegacyItem, error] {
	return follow(ctx, c, item(id)+"/events/stream", after, frame.legacyItem)
}

// follow reads the stream at a path; read decodes its frames.
func follow[T any](ctx context.Context, c *Client, path string, after int64, read func(frame) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		err := again(ctx, func() (done, moved bool, err error) {
			before := after
			done, err = c.stream(ctx, path, &after, func(f frame) bool {
				it, err := read(f)
				if err != nil {
					yield(none, err)
					return false
				}
				return yield(it, nil)
			})
			return done, after > before, err
		})
		if err != nil {
			yield(none, err)
		}
	}
}

// again makes attempts until one is done, ctx ends, or the server returns an error that a
// retry cannot fix. The delay grows with each attempt that made no progress.
func again(ctx context.Context, attempt func() (done, moved bool, err error)) error {
	delay := firstDelay
	for {
		done, moved, err := attempt()
		if done {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var e *Error
		if errors.As(err, &e) && e.Status < 500 && e.Status != http.StatusTooManyRequests {
			return err
		}
		if moved {
			delay = firstDelay
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
		delay = min(2*delay, lastDelay)
	}
}

// stream reads one connection. done means that the consumer stopped or the conversation was
// deleted.
func (c *Client) stream(ctx context.Context, path string, after *int64, yield func(frame) bool) (done bool, err error) {
	res, err := c.openStream(ctx, path, "Last-Event-ID", format(*after))
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	r := bufio.NewReader(res.Body)
	for {
		f, err := readFrame(r)
		if err != nil {
			return false, err
		}
		if f.event == "end" {
			return true, nil
		}
		if f.id != 0 && f.id <= *after { // seen before the connection was lost
			continue
		}
		*after = max(*after, f.id)
		if !yield(f) {
			return true, nil
		}
	}
}

// openStream requests server-sent events. The header pairs are added to the request.
func (c *Client) openStream(ctx context.Context, path string, header ...string) (*http.Response, error) {
	req, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		return nil, failure(res)
	}
	return res, nil
}

// frame is one server-sent event.
type frame struct {
	id    int64
	event string
	data  []byte
}

// readFrame reads up to the empty line that ends a frame; comments are skipped.
func readFrame(r *bufio.Reader) (frame, error) {
	var f frame
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return f, err
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			if f.data != nil || f.event != "" {
				return f, nil
			}
			f = frame{}
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			if f.id, err = strconv.ParseInt(value, 10, 64); err != nil {
				return f, fmt.Errorf("the stream has an event ID that is not a number: %q", value)
			}
		case "event":
			f.event = value
		case "data":
			if f.data != nil {
				f.data = append(f.data, '\n')
			}
			f.data = append(f.data, value...)
		}
	}
}

func (f frame) item() (Item, error) {
	it := Item{ID: f.id, Raw: f.data}
	var target any
	switch f.event {
	case "", "message":
		it.Event = &api.Event{}
		target = it.Event
	case "delta":
		it.Delta = &api.Delta{}
		target = it.Delta
	case "queue": // null leaves it as it is
		it.Queue = &api.QueuePlace{}
		target = it.Queue
	default: // a type of a newer server
		return it, nil
	}
	return it, f.decode(target)
}

func (f frame) legacyItem() (LegacyItem, error) {
	it := LegacyItem{ID: f.id, Raw: f.data}
	var target any
	switch f.event {
	case "", "message":
		it.Event = &api.LegacyEvent{}
		target = it.Event
	case "status":
		it.Status = &api.StatusUpdate{}
		target = it.Status
	case "delta":
		it.Delta = &api.Delta{}
		target = it.Delta
	default: // a type of a newer server
		return it, nil
	}
	return it, f.decode(target)
}

func (f frame) decode(target any) error {
	if err := json.Unmarshal(f.data, target); err != nil {
		return fmt.Errorf("decode an event of the stream: %w", err)
	}
	return nil
}

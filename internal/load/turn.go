package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Conversations is the path under which conversations are made and found.
const Conversations = "/api/conversations"

// Talk is a conversation with the connection of its owner.
type Talk struct {
	Addr, Key, Path string

	link *Link
	said [][]byte // the same message with each of the owner's keys
	next int
}

// Create makes a conversation with a first message, which Say repeats. More keys of the same
// user let it say more per second than one key may.
func Create(addr, key, text string, more ...string) (*Talk, error) {
	l, err := Dial(addr)
	if err != nil {
		return nil, err
	}
	body, _ := json.Marshal(map[string]string{"initial_user_msg": text})
	answer, err := l.Ask(Message("POST", Conversations, addr, key, string(body)))
	var made struct {
		ID string `json:"conversation_id"`
	}
	if err == nil {
		err = json.Unmarshal(answer, &made)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	path := Conversations + "/" + made.ID
	said, _ := json.Marshal(map[string]string{"message": text})
	t := &Talk{Addr: addr, Key: key, Path: path, link: l}
	for _, k := range append([]string{key}, more...) {
		t.said = append(t.said, Message("POST", path+"/message", addr, k, string(said)))
	}
	return t, nil
}

// Say sends one more message.
func (t *Talk) Say() error {
	t.next++
	_, err := t.link.Ask(t.said[t.next%len(t.said)])
	return err
}

// Get reads the conversation.
func (t *Talk) Get() ([]byte, error) {
	return t.link.Ask(Message("GET", t.Path, t.Addr, t.Key, ""))
}

// Close ends the connection.
func (t *Talk) Close() { t.link.Close() }

// Delete deletes the conversation, and with it the sandbox, which would outlive the server.
func (t *Talk) Delete() error {
	_, err := Patient(func() ([]byte, error) { return Ask1(t.Addr, Message(http.MethodDelete, t.Path, t.Addr, t.Key, "")) })
	return err
}

// Chat is a conversation that its owner follows.
type Chat struct {
	*Talk
	in *Stream
}

// Open makes a conversation and follows it to the end of its first turn, which starts the
// sandbox. The chat is not nil once the conversation exists, also if the turn fails.
func Open(addr, key, text string, more ...string) (*Chat, error) {
	t, err := Create(addr, key, text, more...)
	if err != nil {
		return nil, err
	}
	c := &Chat{Talk: t}
	if c.in, err = Follow(addr, t.Path+"/events/stream", key, 0); err != nil {
		return c, err
	}
	return c, c.await()
}

// Close ends its connections.
func (c *Chat) Close() {
	c.Talk.Close()
	if c.in != nil {
		c.in.Close()
	}
}

// Turn says something and waits until the agent has answered.
func (c *Chat) Turn() error {
	if err := c.Say(); err != nil {
		return err
	}
	return c.await()
}

// TurnTime is how long a turn may take before it counts as failed.
const TurnTime = 2 * time.Minute

// What frames say.
var (
	ranWell  = []byte(`"observation":"run","content":"hi`)
	newState = []byte(`"observation":"agent_state_changed"`)
	working  = [][]byte{[]byte(`"agent_state":"loading"`), []byte(`"agent_state":"running"`)}
	awaiting = []byte(`"agent_state":"awaiting_user_input"`)
)

// TurnEnd reads up to the end of a turn and returns the number of its last event. It fails
// when that does not come in time.
func (s *Stream) TurnEnd(within time.Duration) (int64, error) {
	s.Until(time.Now().Add(within))
	for {
		id, data, err := s.Event()
		if err != nil || bytes.Contains(data, newState) && bytes.Contains(data, awaiting) {
			return id, err
		}
	}
}

// await reads up to the end of a turn. A turn in which the command was not run
// has failed, whatever its end says.
func (c *Chat) await() error {
	c.in.Until(time.Now().Add(TurnTime))
	ran := false
	for {
		data, err := c.in.Field("data:")
		switch {
		case err != nil:
			return err
		case bytes.Contains(data, ranWell):
			ran = true
		case !bytes.Contains(data, newState), bytes.Contains(data, working[0]), bytes.Contains(data, working[1]):
		case bytes.Contains(data, awaiting) && ran:
			return nil
		default:
			return fmt.Errorf("a turn ended with %s", data)
		}
	}
}

package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/coder/websocket"

	"deckhand/api"
)

// Terminal is an open terminal. Read returns its output, starting with the last few
// screens; Write sends input. Read returns io.EOF when the shell has ended, and a
// websocket.CloseError with the reason when the connection was closed.
type Terminal struct {
	conn   *websocket.Conn
	ctx    context.Context
	cancel context.CancelFunc
	read   sync.Mutex
	rest   []byte
}

// Terminal opens the terminal with this name ("" for the main one), or joins it if it is
// open. A sandbox that is not running is started. The connection ends with Close or ctx;
// the terminal stays open in the sandbox.
func (c *Client) Terminal(ctx context.Context, id, name string, size api.TerminalSize) (*Terminal, error) {
	query := url.Values{}
	if name != "" {
		query.Set("name", name)
	}
	if size.Rows > 0 && size.Cols > 0 {
		query.Set("rows", strconv.Itoa(int(size.Rows)))
		query.Set("cols", strconv.Itoa(int(size.Cols)))
	}
	conn, res, err := websocket.Dial(ctx, c.base+item(id)+"/terminal?"+query.Encode(), &websocket.DialOptions{
		HTTPClient: c.HTTP, HTTPHeader: http.Header{"X-Session-Api-Key": {c.key}}})
	if err != nil {
		if res != nil && res.StatusCode != http.StatusSwitchingProtocols && res.Body != nil {
			return nil, failure(res)
		}
		return nil, err
	}
	conn.SetReadLimit(1 << 20)
	t := &Terminal{conn: conn}
	t.ctx, t.cancel = context.WithCancel(ctx)
	return t, nil
}

// Read returns output of the terminal.
func (t *Terminal) Read(b []byte) (int, error) {
	t.read.Lock()
	defer t.read.Unlock()
	for len(t.rest) == 0 {
		_, data, err := t.conn.Read(t.ctx)
		if websocket.CloseStatus(err) == websocket.StatusNormalClosure {
			err = io.EOF
		}
		if err != nil {
			return 0, err
		}
		t.rest = data
	}
	n := copy(b, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// typePiece is below the size limit of a frame.
const typePiece = 32 << 10

// Write sends input to the terminal.
func (t *Terminal) Write(b []byte) (int, error) {
	sent := 0
	for sent < len(b) {
		n := min(len(b)-sent, typePiece)
		if err := t.conn.Write(t.ctx, websocket.MessageBinary, b[sent:sent+n]); err != nil {
			return sent, err
		}
		sent += n
	}
	return sent, nil
}

// Resize sets the size of the terminal.
func (t *Terminal) Resize(size api.TerminalSize) error {
	b, err := json.Marshal(api.TerminalControl{Resize: &size})
	if err != nil {
		return err
	}
	return t.conn.Write(t.ctx, websocket.MessageText, b)
}

// Close closes the connection. The terminal stays open.
func (t *Terminal) Close() error {
	defer t.cancel()
	return t.conn.Close(websocket.StatusNormalClosure, "")
}

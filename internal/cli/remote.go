package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/access"
	"deckhand/internal/control"
	"deckhand/internal/outbound"
	"deckhand/internal/terminal"
)

// RemoteFlags are those of commands that talk to a running server.
type RemoteFlags struct {
	DataDir string `name:"data-dir" env:"DECKHAND_DATA_DIR" default:"${data_dir}" placeholder:"DIR" help:"Data directory of a server on this machine, used to find its address and key (default: ${default})."`
	ServerFlags
}

// ServerFlags say which server to use, and with which key.
type ServerFlags struct {
	Server    string `name:"server" env:"DECKHAND_SERVER" placeholder:"URL" help:"URL of the server. Default: the server running on the data directory."`
	KeyFile   string `name:"key-file" env:"DECKHAND_KEY_FILE" placeholder:"FILE" help:"File with the key. Default: DECKHAND_KEY, or admin.key for a server on the data directory."`
	PlainHTTP bool   `name:"plain-http" env:"DECKHAND_PLAIN_HTTP" help:"Allow sending the key to another machine without TLS, over a trusted network."`
}

const serverHelp = `By default, the command connects to the server that runs on this machine's data directory, with its admin key. For another server, set --server or DECKHAND_SERVER, and pass its key in DECKHAND_KEY or --key-file.`

const remoteHelp = serverHelp + `

A unique prefix of the ID, as shown by deckhand list, is enough. Without an ID, the newest conversation is used.`

// remote is a server that was found.
type remote struct {
	*client.Client
	// public is its address for browsers; here says that it runs on the data dir.
	public string
	here   bool
}

// NoServer is the error of a command that finds no server on a data directory.
type NoServer struct{ DataDir string }

func (e NoServer) Error() string {
	return fmt.Sprintf("no server is running on the data directory %s: start one with deckhand serve, or use --server", e.DataDir)
}

// Connect finds the server and the key. Nothing is sent yet.
func (f *RemoteFlags) Connect() (*remote, error) {
	base, public, here := strings.TrimRight(f.Server, "/"), strings.TrimRight(f.Server, "/"), false
	local, page, err := whereIs(f.DataDir)
	if err == nil && (base == "" || base == local || base == page) {
		base, public, here = local, page, true
	}
	switch {
	case base == "" && errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w, or use --server and --key-file", control.Explain(f.DataDir, err))
	case base == "":
		return nil, NoServer{f.DataDir}
	}
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, Usagef("--server must be an http or https URL without user and query, such as https://deckhand.example.org")
	case u.Scheme == "http" && !here && !f.PlainHTTP && !outbound.IsLoopback(net.JoinHostPort(u.Hostname(), "80")):
		return nil, Usagef("the key would be sent to %s unencrypted: use https, or --plain-http if the network is trusted", u.Host)
	}
	key, err := f.key(here)
	if err != nil {
		return nil, err
	}
	c := client.New(base, key)
	// A key is for the server it was given for, wherever that one points.
	c.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &remote{Client: c, public: public, here: here}, nil
}

// key is the one to show. That of the data dir is shown to its own server only.
func (f *RemoteFlags) key(here bool) (string, error) {
	path := f.KeyFile
	if key := strings.TrimSpace(os.Getenv("DECKHAND_KEY")); key != "" && path == "" {
		return key, nil
	}
	if path == "" && here {
		path = filepath.Join(f.DataDir, "admin.key")
	}
	if path == "" {
		return "", Usagef("--server needs a key: set DECKHAND_KEY or --key-file")
	}
	key, err := access.ReadKeyFile(path)
	if err != nil {
		return "", fmt.Errorf("no key: %w; set DECKHAND_KEY or --key-file", err)
	}
	return key, nil
}

// idForm is what an id looks like, or the beginning of one.
var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// Client finds the server and the key, like Connect.
func (f *RemoteFlags) Client() (*client.Client, error) {
	r, err := f.Connect()
	if err != nil {
		return nil, err
	}
	return r.Client, nil
}

// Find is the conversation with an ID or a unique prefix of it, or the newest one for "".
func Find(ctx context.Context, c *client.Client, id string) (api.Conversation, error) {
	return (&remote{Client: c}).find(ctx, id)
}

// FindSession is Find for a session. list is the command that lists sessions, for messages.
func FindSession(ctx context.Context, c *client.Client, id, list string) (api.Conversation, error) {
	return (&remote{Client: c}).named(ctx, id, "session", list)
}

// errNone means that the server has no conversation.
var errNone = errors.New("no conversations yet; create one with deckhand new")

// find is the conversation that is meant.
func (r *remote) find(ctx context.Context, id string) (api.Conversation, error) {
	if id == "" {
		page, err := r.Conversations(ctx, url.Values{"limit": {"1"}})
		if err == nil && len(page.Results) == 0 {
			err = errNone
		}
		if err != nil {
			return api.Conversation{}, Plainly(err)
		}
		return page.Results[0], nil
	}
	return r.named(ctx, id, "conversation", "deckhand list; sessions in folders open with deckhand --resume")
}

// named is the conversation with an ID or a prefix of it. noun is the word for a conversation in errors, and list the command that
// lists them.
func (r *remote) named(ctx context.Context, id, noun, list string) (api.Conversation, error) {
	if !idForm.MatchString(id) {
		return api.Conversation{}, Usagef("%q is not a %s ID; list %ss with %s", id, noun, noun, list)
	}
	c, err := r.Conversation(ctx, id)
	if !client.IsNotFound(err) {
		return c, Plainly(err)
	}
	found, err := r.ConversationsWithPrefix(ctx, id)
	switch {
	case errors.Is(err, client.ErrPrefixTooShort):
		return c, Usagef("%w", err)
	case err != nil:
		return c, Plainly(err)
	case len(found) == 0:
		return c, fmt.Errorf("%s %s not found; list %ss with %s", noun, id, noun, list)
	case len(found) > 1:
		return c, Usagef("several %ss have IDs that begin with %s; use a longer prefix", noun, id)
	}
	return found[0], nil
}

// NewestEvent is the number of the last event of a conversation that a stream tells.
func NewestEvent(ctx context.Context, c *client.Client, id string) (int64, error) {
	return (&remote{Client: c}).newest(ctx, id)
}

// newest is the number of the last event that a stream tells.
func (r *remote) newest(ctx context.Context, id string) (int64, error) {
	page, err := r.Events(ctx, id, url.Values{"reverse": {"true"}, "limit": {"1"}})
	if err != nil || len(page.Events) == 0 {
		return 0, Plainly(err)
	}
	return page.Events[0].ID, nil
}

// Plainly says what a person can do about an error.
func Plainly(err error) error {
	var e *client.Error
	var dial *net.OpError
	switch {
	case errors.As(err, &e) && e.Status == http.StatusUnauthorized:
		return errors.New("invalid, revoked or expired key: check DECKHAND_KEY and --key-file, or create a key on the server with deckhand key create --user NAME")
	case errors.As(err, &e) && e.Status >= 300 && e.Status < 400:
		return errors.New("the server redirects to another URL; use that URL with --server")
	case errors.As(err, &dial) && dial.Op == "dial":
		return fmt.Errorf("cannot reach the server: %w", dial)
	case e != nil && e.Code == api.CodeSettingsNotFound:
		return errors.New("no model is chosen on this server yet: choose one in the web page (deckhand open), or store the settings with the API")
	case e != nil && e.Code == api.CodeLLMAuthentication:
		return errors.New("the model in your settings needs a key: add one in the web page under Settings → Models (deckhand open), or choose another model")
	case e != nil:
		return fmt.Errorf("the server refused the request: %s", terminal.Inline(e.Message))
	}
	return err
}

// whereIs asks the server on a data dir for its address, on this machine and for browsers.
func whereIs(dir string) (local, public string, err error) {
	answer, err := control.Ask(dir, control.Address)
	local, public, ok := strings.Cut(answer, " ")
	if err == nil && !ok {
		err = errors.New("the server did not report its address")
	}
	return local, public, err
}

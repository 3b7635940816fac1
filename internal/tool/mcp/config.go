package mcp

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"deckhand/api"
	"deckhand/internal/clip"
	"deckhand/internal/secret"
	"deckhand/internal/settings"
	"deckhand/internal/tool"
)

// Kind is how a server is spoken to.
type Kind string

// The kinds.
const (
	SSE   Kind = "sse"
	SHTTP Kind = "shttp"
	Stdio Kind = "stdio"
)

// State is where a server stands.
type State string

// The states.
const (
	Starting State = "starting"
	Ready    State = "ready"
	Failed   State = "failed"
	// Stopped is a server that was not needed yet, or that is idle until its next use.
	Stopped State = "stopped"
)

// Server is one tool server.
type Server struct {
	Kind Kind
	// Name is unique among the servers of a session.
	Name string

	// URL and APIKey are for servers at an address.
	URL    string
	APIKey secret.Secret
	// Timeout bounds a call; 0 is a minute.
	Timeout time.Duration

	// Command, Args and Env are for servers inside the sandbox.
	Command string
	Args    []string
	Env     map[string]secret.Secret
}

// Config is what a Set is made of.
type Config struct {
	Servers []Server
	// Reserved are names of tools that are not ours to give.
	Reserved []string
	// Room is how many tools all servers may offer together; 0 is as many as they like.
	Room int
	// Client is used for everything that goes to an address. It must check at dial
	// time where it connects to, and not let credentials follow a redirect.
	Client *http.Client
	// Box gives the sandbox that stdio servers run in; nil if there is none.
	Box tool.Box
	// Withhold says why a stdio server must not get the values of its Env now, "" if it may
	// have them. It is asked once the sandbox is there, before each start; may be nil.
	Withhold func(ctx context.Context) (reason string, err error)
	// Report is told of every failure of a server, once, and when one that had
	// failed is ready again. It is also told of a server that takes long to start: while the
	// model waits for it, and when it waits no more. It may be called by several at once; may be nil.
	Report func(Status)
	Logger *slog.Logger
}

// Status is what people are told of a server. It holds no secret.
type Status struct {
	Name string
	Kind Kind
	// Address is the URL without user, password and query, or the command without its arguments.
	Address string
	State   State
	// Late is true for a server that is starting and no longer waited for.
	Late bool
	// Error is a sentence about what is wrong. One that is ready can have one too.
	Error string
	// Tools are the names that the model knows.
	Tools []string
	// Since is when it came into this state.
	Since time.Time
}

// Wire is the status as clients read it.
func (s Status) Wire() api.MCPServerStatus {
	out := api.MCPServerStatus{Name: s.Name, Kind: string(s.Kind), Address: s.Address, State: string(s.State), OK: s.State == Ready,
		Tools: append([]string{}, s.Tools...), Since: s.Since}
	if s.Error != "" {
		out.Error = &s.Error
	}
	return out
}

// Servers are those of a configuration, with names for all: servers at an
// address are called after their host.
func Servers(m settings.MCP) []Server {
	taken := map[string]bool{}
	for _, s := range m.Stdio {
		taken[s.Name] = true
	}
	var out []Server
	remote := func(kind Kind, list []settings.Server) {
		for _, s := range list {
			name := unique(hostName(s.URL), func(n string) bool { return taken[n] })
			taken[name] = true
			srv := Server{Kind: kind, Name: name, URL: s.URL, APIKey: s.APIKey}
			if s.Timeout != nil {
				srv.Timeout = time.Duration(*s.Timeout) * time.Second
			}
			out = append(out, srv)
		}
	}
	remote(SSE, m.SSE)
	remote(SHTTP, m.SHTTP)
	for _, s := range m.Stdio {
		out = append(out, Server{Kind: Stdio, Name: s.Name, Command: s.Command, Args: slices.Clone(s.Args), Env: maps.Clone(s.Env)})
	}
	return out
}

// hostName is a short name for a server at an address.
func hostName(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return "server"
	}
	return clean(strings.TrimPrefix(u.Hostname(), "www."), maxServerName)
}

// same reports whether two servers are one: nothing has to be started anew.
func same(a, b Server) bool {
	return a.Kind == b.Kind && a.Name == b.Name && a.URL == b.URL && a.APIKey.Equal(b.APIKey) && a.Timeout == b.Timeout &&
		a.Command == b.Command && slices.Equal(a.Args, b.Args) && maps.EqualFunc(a.Env, b.Env, secret.Secret.Equal)
}

// address is the server's, fit to be seen.
func (s Server) address() string {
	if s.Kind == Stdio {
		return s.Command
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// scrub takes what must not be seen out of a text that others wrote, and bounds it.
func (s Server) scrub(text string) string {
	if s.URL != "" {
		text = strings.ReplaceAll(text, s.URL, s.address())
	}
	for _, v := range s.hidden() {
		text = strings.ReplaceAll(text, v, secret.Mask)
	}
	return clip.MiddleRunes(strings.ToValidUTF8(strings.TrimSpace(text), "�"), maxError)
}

// sentence makes a sentence of what went wrong.
func (s Server) sentence(text string) string {
	text = s.scrub(text)
	if text == "" {
		return "It failed without saying why."
	}
	first, n := utf8.DecodeRuneInString(text)
	text = string(unicode.ToUpper(first)) + text[n:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// hidden are the values that stand in no message.
func (s Server) hidden() []string {
	var out []string
	add := func(v string) {
		if len(v) > 3 { // shorter ones are no secrets, and would tear words apart
			out = append(out, v)
		}
	}
	add(s.APIKey.Reveal())
	for _, v := range s.Env {
		add(v.Reveal())
	}
	if u, err := url.Parse(s.URL); err == nil {
		add(u.RawQuery)
		for _, values := range u.Query() {
			for _, v := range values {
				add(v)
			}
		}
		password, _ := u.User.Password()
		add(password)
	}
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) }) // the whole before its parts
	return out
}

// maxError bounds a sentence about what is wrong.
const maxError = 1000

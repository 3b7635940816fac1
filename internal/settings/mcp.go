package settings

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"deckhand/api"
	"deckhand/internal/secret"
)

const (
	maxServers = 100
	maxArgs    = 1000
	maxArg     = 32 << 10
)

var serverName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// CheckMCP turns a wire configuration into one to use, and lists what is wrong with it
// below path. A masked key or environment value is taken from stored, which may be nil.
func CheckMCP(in api.MCPConfig, stored *MCP, path ...any) (MCP, []api.FieldError) {
	c := &mcpCheck{path: path}
	if stored != nil {
		c.stored = stored.Clone()
	}
	if len(in.SSEServers)+len(in.StdioServers)+len(in.SHTTPServers) > maxServers {
		c.refuse(&problem{"too_long", "Too many MCP servers: the limit is 100."})
		return MCP{}, c.bad
	}
	out := MCP{
		SSE:   c.servers("sse_servers", in.SSEServers, c.stored.SSE, c.stored.SHTTP),
		SHTTP: c.servers("shttp_servers", in.SHTTPServers, c.stored.SHTTP, c.stored.SSE),
	}
	seen := map[string]bool{}
	for i, srv := range in.StdioServers {
		out.Stdio = append(out.Stdio, c.stdio(i, srv, seen))
	}
	return out, c.bad
}

// CheckSize refuses more secrets than one user may have.
func (m MCP) CheckSize(path ...any) []api.FieldError {
	if s := (Settings{MCP: &m}); s.secretBytes() <= maxSecretBytes {
		return nil
	}
	return []api.FieldError{{Loc: path, Msg: tooMuch.msg, Type: tooMuch.typ}}
}

type mcpCheck struct {
	path   []any
	stored MCP
	bad    []api.FieldError
}

func (c *mcpCheck) refuse(p *problem, path ...any) {
	c.bad = append(c.bad, api.FieldError{Loc: slices.Concat(c.path, path), Msg: p.msg, Type: p.typ})
}

// servers looks for kept keys in its own list first, then in the other one: the same
// address gets the same key, whatever it speaks.
func (c *mcpCheck) servers(list string, in []api.MCPServer, own, other []Server) []Server {
	var out []Server
	seen := map[string]bool{}
	for i, srv := range in {
		if p := checkURL(srv.URL); p != nil {
			c.refuse(p, list, i, "url")
		} else if seen[srv.URL] {
			c.refuse(&problem{"value_error", "This URL is in the list twice. Remove one."}, list, i, "url")
		}
		seen[srv.URL] = true
		if srv.Timeout != nil && list != "shttp_servers" {
			c.refuse(&problem{"extra_forbidden", "Only shttp_servers can have a timeout. Omit it."}, list, i, "timeout")
		} else if srv.Timeout != nil && (*srv.Timeout < 1 || *srv.Timeout > 3600) {
			typ := "greater_than_equal"
			if *srv.Timeout > 3600 {
				typ = "less_than_equal"
			}
			c.refuse(&problem{typ, "Must be a number of seconds from 1 to 3600, or null."}, list, i, "timeout")
		}
		kept := slices.Concat(own, other)
		at := slices.IndexFunc(kept, func(s Server) bool { return s.URL == srv.URL && !s.APIKey.IsZero() })
		out = append(out, Server{URL: srv.URL, Timeout: copyOf(srv.Timeout)})
		last := &out[len(out)-1]
		switch key := deref(srv.APIKey); {
		case key == "":
		case key == api.Masked && at < 0:
			c.refuse(nothingStored, list, i, "api_key")
		case key == api.Masked:
			last.APIKey = kept[at].APIKey
		default:
			if p := checkKey(key); p != nil {
				c.refuse(p, list, i, "api_key")
			}
			last.APIKey = secret.New(key)
		}
	}
	return out
}

func (c *mcpCheck) stdio(i int, in api.StdioServer, seen map[string]bool) StdioServer {
	refuse := func(msg string, path ...any) {
		c.refuse(&problem{"value_error", msg}, append([]any{"stdio_servers", i}, path...)...)
	}
	if !serverName.MatchString(in.Name) {
		refuse("Must be a name of letters, digits, _ and -, at most 64 characters.", "name")
	} else if seen[in.Name] {
		refuse("This name is in the list twice. Names must be unique.", "name")
	}
	seen[in.Name] = true
	switch {
	case in.Command == "":
		refuse("The command is missing.", "command")
	case len(in.Command) > 4096 || hasControl(in.Command, "") || strings.ContainsFunc(in.Command, unicode.IsSpace):
		refuse("The command must not contain spaces. Put its arguments into args.", "command")
	}
	if len(in.Args) > maxArgs {
		refuse("Too many arguments: the limit is 1000.", "args")
	}
	for j, arg := range in.Args {
		if len(arg) > maxArg || strings.ContainsRune(arg, 0) {
			refuse("An argument must be at most 32768 bytes and must not contain a NUL character.", "args", j)
		}
	}
	out := StdioServer{Name: in.Name, Command: in.Command, Args: slices.Clone(in.Args)}
	if len(in.Args) == 0 {
		out.Args = nil
	}
	var kept map[string]secret.Secret
	if at := slices.IndexFunc(c.stored.Stdio, func(s StdioServer) bool { return s.Name == in.Name }); at >= 0 {
		kept = c.stored.Stdio[at].Env
	}
	for _, name := range slices.Sorted(maps.Keys(in.Env)) {
		if out.Env == nil {
			out.Env = map[string]secret.Secret{}
		}
		value := in.Env[name]
		out.Env[name] = secret.New(value)
		if p := checkEnvName(name); p != nil {
			c.refuse(p, "stdio_servers", i, "env", name)
		} else if value == api.Masked && kept[name].IsZero() {
			c.refuse(nothingStored, "stdio_servers", i, "env", name)
		} else if value == api.Masked {
			out.Env[name] = kept[name]
		} else if p := checkEnvValue(value); p != nil {
			c.refuse(p, "stdio_servers", i, "env", name)
		}
	}
	return out
}

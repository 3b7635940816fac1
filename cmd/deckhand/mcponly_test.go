package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/npmtest"
)

// foreignTools are the tools of this name that others offer: each server's has
// its name, or the server's name before it.
func foreignTools(a llmtest.Asked, name string) []string {
	var out []string
	for _, t := range a.Tools {
		if t == name || strings.HasSuffix(t, "_"+name) {
			out = append(out, t)
		}
	}
	return out
}

// foreigner mends the greeting with nothing but tools of others. As the mender,
// it goes by what it is told.
func foreigner(ws string) mind {
	at := func(file string) string { return filepath.Join(ws, file) }
	return func(a llmtest.Asked) llmtest.Reply {
		got := results(a)
		last := ""
		if len(got) > 0 {
			last = got[len(got)-1].text
		}
		one := func(name string, args map[string]any) llmtest.Reply {
			if found := foreignTools(a, name); len(found) > 0 {
				return calls(a, use(found[0], args))
			}
			return llmtest.Reply{Text: fmt.Sprintf("I do not know how to go on: there is no %s in %v", name, a.Tools)}
		}
		switch n := len(got); {
		case n == 0:
			return one("list_directory", map[string]any{"path": ws})
		case n == 1 && strings.Contains(last, "[FILE] greet.sh"):
			return one("read_text_file", map[string]any{"path": at("greet.sh")})
		case n == 2 && strings.Contains(last, "Helo, $1"):
			return one("edit_file", map[string]any{"path": at("greet.sh"), "edits": []map[string]string{{"oldText": "Helo", "newText": "Hello"}}})
		case n == 3 && strings.Contains(last, "+    echo \"Hello, $1\""):
			return one("write_file", map[string]any{"path": at("NOTES"), "content": "Mended.\n"})
		case n == 4:
			var all []llm.Call
			for i, name := range foreignTools(a, "echo") {
				all = append(all, use(name, map[string]any{"message": fmt.Sprintf("to server %d", i)}))
			}
			return calls(a, all...)
		case n == 7 && strings.Contains(last, "Echo: to server 2"):
			return one("get-sum", map[string]any{"a": 40, "b": 2})
		case n == 8 && strings.Contains(last, "42"):
			return one("get-tiny-image", map[string]any{})
		case n == 9:
			return llmtest.Reply{Text: "All was done with tools of others."}
		}
		return llmtest.Reply{Text: fmt.Sprintf("I do not know how to go on: %q", got)}
	}
}

// An agent works with nothing but the tools of real servers: two that run in its
// sandbox and two at addresses, in the two ways of speaking to those.
func TestTaskWithForeignToolsOnly(t *testing.T) {
	t.Parallel()
	modules := npmtest.Servers(t, nil)
	l := newLab(t, "models:\n  openai/foreigner: {window: 200000, images: true}\n")
	const id = "with-tools-of-others"
	inside := l.workspace(id)
	sse, shttp := npmSite(t, modules, "sse")+"/sse", npmSite(t, modules, "streamableHttp")+"/mcp"
	stdio := func(name, pkg string, more ...string) api.StdioServer {
		return api.StdioServer{Name: name, Command: "node", Args: append([]string{npmtest.Program(inside+"/.tools/node_modules", pkg)}, more...), Env: map[string]string{"FOREIGN_KEY": "sk-of-" + name}}
	}
	servers := api.MCPConfig{SSEServers: []api.MCPServer{{URL: sse}}, SHTTPServers: []api.MCPServer{{URL: shttp}},
		StdioServers: []api.StdioServer{stdio("files", npmtest.Filesystem, inside), stdio("everything", npmtest.Everything)}}
	p := l.person(t, "foreigner", foreigner(inside))
	if _, err := p.client.StoreSettings(t.Context(), api.SettingsInput{MCPConfig: api.Some(servers)}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.client.Create(t.Context(), api.CreateConversation{ConversationID: api.Some(id)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.drop(id) })
	p.upload(id, map[string]string{"greet.sh": broken["greet.sh"]})
	copyModules(t, modules, filepath.Join(l.dir, "boxes", id, "ws", ".tools", "node_modules"))

	if err := p.client.Say(t.Context(), id, "Mend the greeting.", ""); err != nil {
		t.Fatal(err)
	}
	stream := p.stream(id, 0, func(it client.LegacyItem) bool {
		return it.Event != nil && strings.HasPrefix(it.Event.Message, "All was done")
	})
	log := p.events(id)[:len(stream)]
	if !slices.EqualFunc(stream, log, func(a, b client.LegacyItem) bool { return string(a.Raw) == string(b.Raw) }) {
		t.Errorf("the stream\n%s\nand the log\n%s\ndiffer", describe(stream), describe(log))
	}
	if got := kinds(log); !strings.HasSuffix(got, strings.Repeat("call_tool_mcp =mcp ", 9)+"message") {
		t.Errorf("what was done is %s", got)
	}
	if now, err := p.client.ReadFile(t.Context(), id, "greet.sh"); err != nil || now != mended {
		t.Errorf("greet.sh is %q, %v", now, err)
	}
	if now, err := p.client.ReadFile(t.Context(), id, "NOTES"); err != nil || now != "Mended.\n" {
		t.Errorf("NOTES is %q, %v", now, err)
	}
	all := p.requests()
	seen := slices.ContainsFunc(all[len(all)-1].Messages, func(m llm.Message) bool {
		return len(m.Images) == 1 && strings.HasPrefix(m.Images[0], "data:image/png")
	})
	if !seen {
		t.Error("the model was not shown the picture")
	}
	p.foreignStates(id, all[0])
}

// foreignStates compares what the API says of the servers with what the model was offered.
func (p *person) foreignStates(id string, a llmtest.Asked) {
	p.t.Helper()
	states, err := p.client.ToolServers(p.t.Context(), id)
	if err != nil || len(states) != 4 {
		p.t.Fatalf("%+v %v", states, err)
	}
	var kinds []string
	for _, s := range states {
		kinds = append(kinds, s.Kind)
		if !s.OK || s.State != "ready" || s.Error != nil || len(s.Tools) == 0 {
			p.t.Errorf("%+v", s)
		}
		for _, name := range s.Tools {
			if !slices.Contains(a.Tools, name) {
				p.t.Errorf("%s of %s was not offered", name, s.Name)
			}
		}
	}
	if !slices.Equal(kinds, []string{"sse", "shttp", "stdio", "stdio"}) {
		p.t.Errorf("%v", kinds)
	}
	m := p.settings().MCPConfig
	for _, s := range m.StdioServers {
		if s.Env["FOREIGN_KEY"] != api.Masked {
			p.t.Errorf("%+v", s)
		}
	}
	tested, err := p.client.TestToolServers(p.t.Context(), &api.MCPConfig{SSEServers: m.SSEServers, SHTTPServers: m.SHTTPServers})
	if err != nil || len(tested) != 2 || !tested[0].OK || !tested[1].OK || !slices.Contains(tested[0].Tools, "echo") {
		p.t.Errorf("%+v %v", tested, err)
	}
}

// A conversation has servers of its own beside those of the settings. Those that
// fail are reported, and the others and the conversation work; also after a stop.
func TestFailingToolServersAreReported(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	// The conversation's servers take the place of the user's.
	p := l.person(t, "unlucky", steps(use("parrot", map[string]any{"words": "still here"})),
		`"mcp_config":{"stdio_servers":[{"name":"unused","command":"no-such-program"}]}`)
	body, err := json.Marshal(map[string]any{"initial_user_msg": "Go.", "mcp_config": map[string]any{"stdio_servers": []any{
		map[string]any{"name": "absent", "command": "no-such-program", "env": map[string]any{"TOKEN": "sk-of-absent-1234"}},
	}, "shttp_servers": []any{
		map[string]any{"url": toolSite(t, nil), "api_key": "sk-of-the-parrot-1234"},
		map[string]any{"url": "http://127.0.0.1:1/tools?key=sk-in-the-address", "api_key": "sk-of-nobody-1234"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	code, text, _ := p.raw("POST", "/api/conversations", string(body))
	var made api.ConversationResponse
	if err := json.Unmarshal([]byte(text), &made); err != nil || code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	id := made.ConversationID
	t.Cleanup(func() { p.drop(id) })
	failed, said := p.statuses(id, "STATUS$MCP_SERVER_FAILED", 2)
	for _, name := range []string{"absent", "127_0_0_1_2"} {
		if !strings.Contains(failed, name) {
			t.Errorf("%s is not reported: %s", name, failed)
		}
	}
	p.follow(id, 0, agentIs("awaiting_user_input"))
	if got := observed(t, p.events(id), "mcp"); !strings.Contains(got, "still here") {
		t.Errorf("%s", got)
	}
	states, err := p.client.ToolServers(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var short []string
	for _, s := range states {
		short = append(short, s.Kind+" "+s.State)
		if s.OK == (s.Error != nil) {
			t.Errorf("%+v", s)
		}
	}
	slices.Sort(short)
	if want := []string{"shttp failed", "shttp ready", "stdio failed"}; !slices.Equal(short, want) {
		t.Errorf("%v, want %v", short, want)
	}
	shown, err := json.Marshal(states)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"sk-of-absent-1234", "sk-of-the-parrot-1234", "sk-in-the-address", "sk-of-nobody-1234"} {
		for where, text := range map[string]string{"the states": string(shown), "the stream": said, "the events": describe(p.events(id)), "the server's log": l.logs.String()} {
			if strings.Contains(text, secret) {
				t.Errorf("%s is in %s", secret, where)
			}
		}
	}
	if _, err := p.client.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p.ask(id, "Once more.", "awaiting_user_input")
	if got := kinds(p.events(id)); strings.Count(got, "=mcp") != 2 {
		t.Errorf("after a stop: %s", got)
	}
}

// statuses waits for so many notices with the id, and gives them and all that
// was streamed before.
func (p *person) statuses(id, which string, n int) (notices, all string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Minute)
	defer cancel()
	for it, err := range p.client.FollowLegacy(ctx, id, 0) {
		if err != nil {
			p.t.Fatalf("%v; seen: %s", err, all)
		}
		all += string(it.Raw) + "\n"
		if it.Status != nil && it.Status.ID == which {
			notices += it.Status.Message + "\n"
			if n--; n == 0 {
				break
			}
		}
	}
	return notices, all
}

// A conversation's own program takes the place of that of the same name in the
// settings: providers refuse a request with two tools of one name.
func TestOneNameIsOneToolServer(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	const config = `"mcp_config":{"stdio_servers":[{"name":"twin","command":"no-such-%s"}]}`
	p := l.person(t, "twin", hello, fmt.Sprintf(config, "of-the-settings"))
	code, text, _ := p.raw("POST", "/api/conversations", `{"initial_user_msg":"Go.",`+fmt.Sprintf(config, "of-its-own")+`}`)
	var made api.ConversationResponse
	if err := json.Unmarshal([]byte(text), &made); err != nil || code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	t.Cleanup(func() { p.drop(made.ConversationID) })
	p.follow(made.ConversationID, 0, agentIs("awaiting_user_input"))
	states, err := p.client.ToolServers(t.Context(), made.ConversationID)
	if err != nil || len(states) != 1 || states[0].Address != "no-such-of-its-own" {
		t.Errorf("%+v %v", states, err)
	}
}

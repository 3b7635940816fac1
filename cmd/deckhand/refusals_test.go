package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/cli"
	"deckhand/internal/config"
	"deckhand/internal/conversation"
	"deckhand/internal/datadir"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/sandbox/sandboxtest"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/soak"
	"deckhand/internal/telemetry"
	"deckhand/internal/trigger"
)

// The entry points.
const (
	overHTTP   = "HTTP"
	legacyHTTP = "legacy HTTP"
	bySocket   = "legacy socket"
	byMCP      = "MCP"
	byTrigger  = "trigger"
	byRun      = "run"
	delegating = "delegation"
)

var entryPoints = []string{overHTTP, legacyHTTP, bySocket, byMCP, byTrigger, byRun, delegating}

// refusal is a row of the table: what is refused, with which code, and how each entry point is asked for it.
type refusal struct {
	settings string // of the user; "" stores none
	code     string
	ask      map[string]func(*asker) string // returns the code of the refusal, "" without one
	not      map[string]string              // why an entry point cannot be asked for it
}

const (
	keylessModel, unpricedModel, blindModel = "scripted/demo", "ollama/unheard-of", "openai/blind"
	pixelURL                                = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAICRAEAOw=="
	withDemo                                = `"llm_model":"` + keylessModel + `"`
	withBlind                               = `"llm_model":"` + blindModel + `","llm_api_key":"k"`
)

// Why an entry point cannot be asked.
const (
	socketJoins   = "joins a conversation that is there"
	childInherits = "a child works with its parent's settings, repository and model, which were checked before"
	runClones     = "clones by itself and asks no provider"
	runAsks       = "asks only when its conversation waits for it"
	runOwns       = "has one conversation, which it created"
	textOnly      = "takes no images"
	noDecisions   = "cannot approve"
	ownText       = "composes its message, which is never empty"
	noSuchCommand = "has no such command"
	sameRoute     = "is the route of HTTP"
)

// creation is a refusal to create a conversation on a repository. run asks the command run; nil if it cannot be asked.
func creation(stored, code, repository, branch string, run func(*asker) string, whyNoRun string) refusal {
	r := refusal{settings: stored, code: code, not: map[string]string{legacyHTTP: sameRoute, bySocket: socketJoins, delegating: childInherits}, ask: map[string]func(*asker) string{
		overHTTP: func(a *asker) string {
			return a.http("POST", "/api/conversations", map[string]any{"initial_user_msg": "fix it", "repository": repository, "git_provider": "gitea", "selected_branch": branch})
		},
		byMCP: func(a *asker) string {
			return a.tool("create_conversation", map[string]any{"message": "fix it", "repository": repository, "branch": branch})
		},
		byTrigger: func(a *asker) string {
			return a.code(a.server.triggers.Start(a.ctx(), trigger.Start{ID: session.NewID(), User: a.user, Provider: "gitea", Repository: repository, Branch: branch, Text: "fix it", Key: strings.Repeat("0", 64)}))
		},
	}}
	if run != nil {
		r.ask[byRun] = run
	} else {
		r.not[byRun] = whyNoRun
	}
	return r
}

// message is a refusal of a message to a conversation.
func message(stored, code string, to func(*asker) string, text string, images ...string) refusal {
	action := map[string]any{"action": "message", "args": map[string]any{"content": text, "image_urls": images}}
	r := refusal{settings: stored, code: code, not: map[string]string{}, ask: map[string]func(*asker) string{
		overHTTP: func(a *asker) string {
			return a.http("POST", "/api/conversations/"+to(a)+"/message", map[string]any{"message": text, "image_urls": images})
		},
		legacyHTTP: func(a *asker) string { return a.http("POST", "/api/conversations/"+to(a)+"/events", action) },
		bySocket:   func(a *asker) string { return a.emit(to(a), action) },
	}}
	if len(images) > 0 {
		r.not[byMCP], r.not[byTrigger], r.not[byRun], r.not[delegating] = textOnly, textOnly, "its prompt "+textOnly, textOnly
		return r
	}
	r.ask[byMCP] = func(a *asker) string {
		return a.tool("send_message", map[string]any{"conversation_id": to(a), "message": text})
	}
	r.ask[byTrigger] = func(a *asker) string {
		_, err := a.server.triggers.Say(a.ctx(), a.user, session.ID(to(a)), session.UserSaid{Text: text})
		return a.code(err)
	}
	r.not[byRun], r.not[delegating] = runOwns, "says nothing to a conversation that is there"
	return r
}

// change is the action with which legacy clients pause, stop and approve.
func change(state string) map[string]any {
	return map[string]any{"action": "change_agent_state", "args": map[string]any{"agent_state": state}}
}

// refusals are the table.
func refusals() map[string]refusal {
	withRun := func(a *asker) string { return a.run(func(*runCmd) {}) }
	there := func(a *asker) string { return a.conversation() }
	unknown := func(*asker) string { return "unknown" }
	deleted := func(a *asker) string {
		id := a.conversation()
		if code := a.http("DELETE", "/api/conversations/"+id, nil); code != "" {
			a.t.Fatalf("not deleted: %s", code)
		}
		return id
	}
	empty := message(withDemo, api.CodeBadRequest, there, " ")
	empty.not[byTrigger], empty.not[byRun] = ownText, "an empty line continues or ends, and an empty task is a usage error"
	delete(empty.ask, byTrigger)
	empty.ask[delegating] = func(a *asker) string { return a.delegate(session.NewID(), " ", 0) }
	delete(empty.not, delegating)
	return map[string]refusal{
		"no settings":                    creation("", api.CodeSettingsNotFound, "octo/app", "", nil, "has the default settings"),
		"no key":                         creation(`"llm_model":"openai/gpt-4o"`, api.CodeLLMAuthentication, "octo/app", "", withRun, ""),
		"no price":                       creation(`"llm_model":"`+unpricedModel+`","llm_api_key":"k","max_budget_per_task":1`, api.CodePriceUnknown, "octo/app", "", withRun, ""),
		"sandbox image":                  creation(withDemo+`,"sandbox_base_container_image":"debian:13"`, api.CodeSandboxImage, "octo/app", "", nil, "works in a folder of this machine, without an image"),
		"repository that cannot be read": creation(withDemo, api.CodeGitAuthentication, "octo/gone", "", nil, runClones),
		"no such branch":                 creation(withDemo, api.CodeGitBranch, "octo/app", "gone", nil, runClones),
		"not a repository":               creation(withDemo, api.CodeBadRequest, "../etc", "", nil, runClones),
		"image at creation": {settings: withBlind, code: api.CodeBadRequest, ask: map[string]func(*asker) string{
			overHTTP: func(a *asker) string {
				return a.http("POST", "/api/conversations", map[string]any{"initial_user_msg": "see", "image_urls": []string{pixelURL}})
			},
			byRun: func(a *asker) string { return a.run(func(c *runCmd) { c.Image = []string{a.pixel} }) },
		}, not: map[string]string{legacyHTTP: sameRoute, bySocket: socketJoins, byMCP: textOnly, byTrigger: textOnly, delegating: textOnly}},
		"image in a message":   message(withBlind, api.CodeBadRequest, there, "see", pixelURL),
		"empty message":        empty,
		"unknown conversation": message(withDemo, api.CodeConversationNotFound, unknown, "hello"),
		"deleted conversation": message(withDemo, api.CodeConversationNotFound, deleted, "hello"),
		"nothing waits": {settings: withDemo, code: api.CodeConversationRefused, ask: map[string]func(*asker) string{
			overHTTP: func(a *asker) string {
				return a.http("POST", "/api/conversations/"+a.conversation()+"/approvals", map[string]any{"decision": "accept"})
			},
			legacyHTTP: func(a *asker) string {
				return a.http("POST", "/api/conversations/"+a.conversation()+"/events", change("user_confirmed"))
			},
			bySocket: func(a *asker) string { return a.emit(a.conversation(), change("user_confirmed")) },
		}, not: map[string]string{byMCP: noDecisions, byTrigger: noDecisions, byRun: runAsks, delegating: noDecisions}},
		"stop of an unknown one": {settings: withDemo, code: api.CodeConversationNotFound, ask: map[string]func(*asker) string{
			overHTTP: func(a *asker) string { return a.http("POST", "/api/conversations/unknown/stop", nil) },
			byMCP: func(a *asker) string {
				return a.tool("stop_conversation", map[string]any{"conversation_id": "unknown"})
			},
			legacyHTTP: func(a *asker) string {
				return a.http("POST", "/api/conversations/unknown/events", change("stopped"))
			},
			bySocket: func(a *asker) string { return a.emit("unknown", change("stopped")) },
		}, not: map[string]string{byTrigger: noSuchCommand, byRun: runOwns, delegating: noSuchCommand}},
		"unknown model": {settings: withDemo, code: api.CodeModelUnavailable, ask: map[string]func(*asker) string{
			overHTTP: func(a *asker) string {
				return a.http("PUT", "/api/conversations/"+a.conversation()+"/overrides", map[string]any{"llm_model": "nowhere/none"})
			},
		}, not: map[string]string{legacyHTTP: noSuchCommand, bySocket: noSuchCommand, byMCP: noSuchCommand, byTrigger: noSuchCommand, byRun: "the model is a setting there, and is asked when the agent works", delegating: childInherits}},
		"third level of delegation": {settings: withDemo, code: api.CodeConversationRefused, ask: map[string]func(*asker) string{
			delegating: func(a *asker) string { return a.delegate(session.NewID(), "count", conversation.MaxDepth) },
		}, not: map[string]string{overHTTP: noSuchCommand, legacyHTTP: noSuchCommand, bySocket: noSuchCommand, byMCP: noSuchCommand, byTrigger: noSuchCommand, byRun: noSuchCommand}},
		"ID in use": {settings: withDemo, code: api.CodeConversationTaken, ask: map[string]func(*asker) string{
			overHTTP: func(a *asker) string {
				return a.http("POST", "/api/conversations", map[string]any{"conversation_id": a.conversation(), "initial_user_msg": "another"})
			},
			delegating: func(a *asker) string { return a.delegate(session.ID(a.conversation()), "count", 0) },
		}, not: map[string]string{legacyHTTP: sameRoute, bySocket: socketJoins, byMCP: "chooses no ID", byTrigger: "derives its ID from the delivery", byRun: "chooses a random ID"}},
	}
}

// Each refusal has the same API code at every entry point. The table has all entry points in each row: how one is asked, or
// why it cannot be.
func TestEntryPointsRefuseAlike(t *testing.T) {
	soak.NotShort(t, "serves with the whole program")
	t.Setenv("LLM_API_KEY", "")
	t.Setenv("DECKHAND_LLM_API_KEY", "")
	file := filepath.Join(t.TempDir(), "config.yaml")
	pixel := filepath.Join(t.TempDir(), "pixel.gif")
	_, encoded, _ := strings.Cut(pixelURL, ",")
	image, err := base64.StdEncoding.DecodeString(encoded)
	if err := errors.Join(err, os.WriteFile(pixel, image, 0o600), os.WriteFile(file, []byte("models:\n  "+blindModel+":\n    images: false\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	b, s := wired(t, file)
	forge := newGitServer(t, trackerToken, "octo/app")
	for name, row := range refusals() {
		t.Run(name, func(t *testing.T) {
			user := strings.ReplaceAll(strings.ToLower(name), " ", "-")
			made, err := b.client.CreateKey(t.Context(), api.CreateKey{User: api.Some(user)})
			if err != nil {
				t.Fatal(err)
			}
			own := *b
			own.t, own.key, own.client = t, made.Secret, client.New(b.base, made.Secret)
			a := &asker{box: &own, server: s, user: user, config: file, pixel: pixel}
			if row.settings != "" {
				if status, text, _ := a.raw("POST", "/api/settings", "{"+row.settings+","+forge.stores(trackerToken)+"}"); status != http.StatusOK {
					t.Fatal(text)
				}
			}
			for _, entry := range entryPoints {
				ask, why := row.ask[entry], row.not[entry]
				switch {
				case (ask == nil) == (why == ""):
					t.Errorf("%s: the row must say how it is asked, or why it cannot be", entry)
				case ask != nil:
					if code := ask(a); code != row.code {
						t.Errorf("%s: %q, want %q", entry, code, row.code)
					}
				}
			}
		})
	}
}

// plainFlags choose no sandbox, with the default limits.
func plainFlags(t *testing.T) sandboxFlags {
	return sandboxFlags{Sandbox: "host", Egress: "open", RunnerPath: sandboxtest.Runner(t), SandboxCPUs: 2, SandboxMemory: 4 << 30, SandboxProcesses: 1024, SandboxDisk: 10 << 30}
}

// wired is a server like that of serve, with its parts.
func wired(t *testing.T, file string) (*box, *server) {
	t.Helper()
	ctx, stop := context.WithCancelCause(context.Background())
	b := &box{t: t, dir: t.TempDir(), logs: &syncBuffer{}}
	c := &serveCmd{DataFlags: config.DataFlags{DataDir: b.dir}, sandboxFlags: plainFlags(t), ListenFlags: config.ListenFlags{Addr: "127.0.0.1:0"}, Titles: "task"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	models, err := config.Read(file)
	must(err)
	d, err := c.open(ctx)
	must(err)
	unlock, err := datadir.Lock(b.dir)
	must(err)
	keyring, err := secret.OpenKeyring(ctx, b.dir, "", d.db)
	must(err)
	must(d.signCookies(ctx, keyring, c.limits()))
	redactor := secret.NewRedactor()
	s, err := wire(ctx, c, catalogue.New(models.Models), d, keyring, redactor, telemetry.NewLogger(b.logs, slog.LevelInfo, "json", redactor.Handler))
	must(err)
	verify := s.conversations.VerifyRepository
	s.conversations.VerifyRepository = func(ctx context.Context, st settings.Settings, provider, repository, branch string) (string, error) {
		return verify(ctx, st, cmp.Or(provider, "gitea"), repository, branch) // so that no server elsewhere is asked
	}
	listener, err := net.Listen("tcp", c.Addr)
	must(err)
	s.public, s.local = c.Base(listener.Addr(), false), c.Local(listener.Addr(), false)
	var greeting bytes.Buffer
	must(cli.Start{Gate: d.gate, DataDir: b.dir, Version: version, Base: s.public}.Announce(ctx, &greeting))
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx, stop, c, listener) }()
	t.Cleanup(func() {
		stop(nil)
		if err := errors.Join(<-ended, d.db.Close()); err != nil {
			t.Error(err)
		}
		unlock()
		b.leavesNothing()
	})
	b.readGreeting(&greeting)
	return b, s
}

// asker asks each entry point as one user, and returns the code of the refusal.
type asker struct {
	*box
	server              *server
	user, config, pixel string
}

func (a *asker) ctx() context.Context { return a.t.Context() }

// conversation is a new one, in which nothing was said.
func (a *asker) conversation() string { return a.create("") }

func (a *asker) code(err error) string {
	a.t.Helper()
	if refused, ok := errors.AsType[*trigger.RefusedError](err); ok {
		return refused.Code
	}
	if r := conversation.RefusalOf(err); r != nil {
		return r.Code
	}
	if err != nil {
		a.t.Error(err)
	}
	return ""
}

// msgID is the code in a JSON answer.
func msgID(text string) string {
	var body struct {
		MsgID string `json:"msg_id"`
		Data  struct {
			MsgID string `json:"msg_id"`
		}
	}
	_ = json.Unmarshal([]byte(text), &body)
	return cmp.Or(body.MsgID, body.Data.MsgID)
}

func (a *asker) http(method, path string, body map[string]any) string {
	a.t.Helper()
	text := ""
	if body != nil {
		maps.DeleteFunc(body, func(_ string, v any) bool { return v == "" })
		b, _ := json.Marshal(body)
		text = string(b)
	}
	_, answer, _ := a.raw(method, path, text)
	return msgID(answer)
}

// emit joins a conversation and sends an action, which is acknowledged.
func (a *asker) emit(id string, action map[string]any) string {
	a.t.Helper()
	w := a.dial("", "conversation_id", id, "latest_event_id", "-1", "session_api_key", a.key)
	defer w.conn.CloseNow()
	for sent := false; ; {
		packet := w.packet()
		if refused, ok := strings.CutPrefix(packet, "44"); ok {
			return msgID(refused)
		}
		if answer, ok := strings.CutPrefix(packet, "437["); ok {
			return msgID(strings.TrimSuffix(answer, "]"))
		}
		if !sent {
			b, _ := json.Marshal([]any{"oh_user_action", action})
			w.send("427" + string(b))
			sent = true
		}
	}
}

func (a *asker) tool(name string, args map[string]any) string {
	a.t.Helper()
	maps.DeleteFunc(args, func(_ string, v any) bool { return v == "" })
	s, err := sdk.NewClient(&sdk.Implementation{Name: "elsewhere"}, nil).Connect(a.ctx(), &sdk.StreamableClientTransport{Endpoint: a.base + "/mcp", HTTPClient: &http.Client{Transport: bearer{a.key}}, DisableStandaloneSSE: true}, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	defer s.Close()
	res, err := s.CallTool(a.ctx(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		a.t.Fatal(err)
	}
	b, _ := json.Marshal(res.StructuredContent)
	return msgID(string(b))
}

// run runs the command run with the settings of the user.
func (a *asker) run(change func(*runCmd)) string {
	a.t.Helper()
	c := &runCmd{Task: "fix it", Dir: a.t.TempDir()}
	c.DataDir, c.User, c.sandboxFlags, c.LogLevel = a.dir, a.user, plainFlags(a.t), "error"
	change(c)
	return a.code(c.Run(a.ctx(), &commands{Config: a.config}, &cli.Output{Stdout: io.Discard, Stderr: io.Discard}))
}

// delegate asks as the agent of a conversation does, which is itself so many levels deep.
func (a *asker) delegate(child session.ID, task string, depth int) string {
	a.t.Helper()
	parent, err := a.server.sessions.Load(a.ctx(), session.ID(a.conversation()))
	if err != nil {
		a.t.Fatal(err)
	}
	parent.Created.Depth = depth
	return a.code(a.server.loop.Delegate(a.ctx(), conversation.Delegate{Parent: parent, Child: child, Agent: "CodeActAgent", Task: task,
		Reserve: func(context.Context) (session.State, error) { return parent, nil }}))
}

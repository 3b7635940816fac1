package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/internal/tool"
)

func TestListAndCall(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			r, w := newRig(t), serve(t, kind, testServer())
			def := w.server("srv")
			def.APIKey = key("the-key-of-the-user")
			s := r.set(def)
			if st := s.States(); len(st) != 1 || st[0].State != Stopped || st[0].Address != w.url || st[0].Kind != kind {
				t.Errorf("%+v", st)
			}
			echo := r.named(s, "echo")
			spec := echo.Spec()
			if spec.Description != "Says it again." || spec.ReadOnly || spec.Harmless || !strings.Contains(string(spec.Schema), `"text"`) {
				t.Errorf("%+v", spec)
			}
			res := r.run(echo, echoArgs{"größer"})
			good(t, res, "größer")
			if !strings.Contains(string(res.Details), `{"result":{"content":[{"type":"text","text":"größer"}]`) {
				t.Errorf("%s", res.Details)
			}
			bad(t, r.run(echo, map[string]int{"text": 7}), "text")
			if st := s.States()[0]; st.State != Ready || !slices.Equal(st.Tools, []string{"echo"}) || st.Error != "" || !st.Since.Equal(r.clock) {
				t.Errorf("%+v", st)
			}
			for _, h := range w.seen() {
				if h.Get("Authorization") != "Bearer the-key-of-the-user" || h.Get("S") != "the-key-of-the-user" ||
					h.Get("X-Session-API-Key") != "the-key-of-the-user" || h.Get("X-OpenHands-ServerConversation-ID") != "s1" {
					t.Errorf("%v", h)
				}
			}
		})
	}
}

func TestContents(t *testing.T) {
	srv := testServer()
	png := []byte("\x89PNG and so on")
	handle(srv, "image", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "look:"}, &sdk.ImageContent{MIMEType: "image/png", Data: png},
			&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("abc")}, &sdk.ResourceLink{Name: "doc", URI: "file:///doc"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "x://y", Text: "inside"}}}}, nil
	})
	handle(srv, "structured", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]int{"n": 7}}, nil
	})
	handle(srv, "broken", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no such row"}}}, nil
	})
	handle(srv, "long", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text("begin" + strings.Repeat("ä", 2*maxText) + "end"), nil
	})
	r, w := newRig(t), serve(t, SHTTP, srv)
	s := r.set(w.server("srv"))
	res := r.run(r.named(s, "image"), nil)
	good(t, res, "look:\n[image, image/png, 14 bytes]\n[audio, audio/wav, 3 bytes, which cannot be played]\n[resource doc file:///doc]\n[resource x://y]\ninside")
	if want := "data:image/png;base64," + base64.StdEncoding.EncodeToString(png); len(res.Images) != 1 || res.Images[0] != want {
		t.Errorf("%v", res.Images)
	}
	good(t, r.run(r.named(s, "structured"), nil), `{"n":7}`)
	broken := r.run(r.named(s, "broken"), nil)
	bad(t, broken, "no such row")
	if !strings.Contains(string(broken.Details), `"isError":true`) {
		t.Errorf("%s", broken.Details)
	}
	long := r.run(r.named(s, "long"), nil)
	if n := len([]rune(long.Text)); n != maxText || !strings.HasPrefix(long.Text, "begin") || !strings.HasSuffix(long.Text, "end") || !strings.Contains(long.Text, "characters are left out") {
		t.Errorf("%d characters", n)
	}
}

// A list of tools can have pages, change, and be too long.
func TestLists(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			srv := sdk.NewServer(&sdk.Implementation{Name: "test"}, &sdk.ServerOptions{PageSize: 7})
			nothing := func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text("ok"), nil }
			for i := range 20 {
				handle(srv, fmt.Sprintf("tool%02d", i), nothing)
			}
			r, w := newRig(t), serve(t, kind, srv)
			s := r.set(w.server("srv"))
			if got := toolNames(s.Tools(t.Context())); len(got) != 20 || got[0] != "tool00" || got[19] != "tool19" {
				t.Errorf("%v", got)
			}
			link := s.all()[0].link
			// An announcement can be lost before the stream for it stands, so it is made
			// again, but not at each look: the server waits until its list rests.
			looks := 0
			until(t, func() bool {
				if looks++; looks%40 == 1 {
					handle(srv, "late", nothing)
					srv.RemoveTools("tool00")
				}
				return !link.fresh()
			})
			got := toolNames(s.Tools(t.Context()))
			if !slices.Contains(got, "late") || slices.Contains(got, "tool00") {
				t.Errorf("%v", got)
			}
		})
	}
}

// A server does not get more room than others.
func TestTooMuch(t *testing.T) {
	srv := testServer()
	for i := range maxTools + 50 {
		handle(srv, fmt.Sprintf("many%04d", i), func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text("ok"), nil })
	}
	r, w := newRig(t), serve(t, SHTTP, srv)
	s := r.set(w.server("srv"))
	if got := s.Tools(t.Context()); len(got) != maxTools || !strings.Contains(s.States()[0].Error, "Only 200 of its 251") || s.States()[0].State != Ready {
		t.Errorf("%d tools: %+v", len(got), s.States())
	}
}

// All servers together do not get more room than there is, and those that are
// left out say so.
func TestRoom(t *testing.T) {
	r, servers := newRig(t), []Server{}
	for i, n := range []int{3, 3, 2} {
		srv := sdk.NewServer(&sdk.Implementation{Name: "test"}, nil)
		for j := range n {
			handle(srv, fmt.Sprintf("tool%d%d", i, j), func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text("ok"), nil })
		}
		servers = append(servers, serve(t, SHTTP, srv).server(fmt.Sprintf("srv%d", i)))
	}
	s := r.pool.Set("s1", Config{Servers: servers, Client: r.client, Room: 4})
	if got := strings.Join(toolNames(s.Tools(t.Context())), " "); got != "tool00 tool01 tool02 tool10" {
		t.Error(got)
	}
	for i, want := range []string{"", "Only 1 of its 3", "Only 0 of its 2"} {
		if st := s.States()[i]; st.State != Ready || (st.Error == "") != (want == "") || !strings.Contains(st.Error, want) || len(st.Tools) != []int{3, 1, 0}[i] {
			t.Errorf("%+v", st)
		}
	}
}

// Models are given no name that one of their providers refuses.
func TestNamesEveryProviderTakes(t *testing.T) {
	n := newNames()
	n.reserve([]string{"echo"})
	for _, c := range []struct{ server, tool, want string }{
		{"127_0_0_1", "echo", "_127_0_0_1_echo"}, {"a", "3d", "_3d"}, {"a", "-x", "_-x"}, {"a", "", "_"}, {"a", "ünï cödé", "_n__c_d_"},
		{"a", "a.b", "a_b"}, {"b", "a_b", "b_a_b"}, {"a", strings.Repeat("9", 100), "_" + strings.Repeat("9", maxToolName-1)},
	} {
		if got := n.of(toolKey{c.server, c.tool}); got != c.want {
			t.Errorf("%s of %s is %s", c.tool, c.server, got)
		}
	}
}

// until polls for a condition that sends no signal.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("it never was so")
		}
	}
}

func TestProgress(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			srv := testServer()
			shown, seen := make(chan string, 10), make(chan struct{})
			handle(srv, "work", func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				err := req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 3, Total: 10, Message: "digging"})
				<-seen // what comes after the result may be lost
				return text("done"), err
			})
			r, w := newRig(t), serve(t, kind, srv)
			res := r.run(r.named(r.set(w.server("srv")), "work"), nil, func(c *tool.Call) {
				c.Live = func(b []byte) { shown <- string(b); close(seen) }
			})
			good(t, res, "done")
			if got := <-shown; got != "3/10 digging\n" {
				t.Errorf("%q", got)
			}
		})
	}
}

// Who is not answered in time is told so.
func TestTimeout(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			srv := testServer()
			release := make(chan struct{})
			handle(srv, "hang", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				<-release
				return text("too late"), nil
			})
			r, w := newRig(t), serve(t, kind, srv)
			t.Cleanup(func() { close(release) })
			def := w.server("srv")
			def.Timeout = 10 * time.Millisecond
			hang := r.named(r.set(def), "hang")
			bad(t, r.run(hang, nil), "timed out after 10ms")
			def.Timeout = time.Hour // which makes it another server
			s := r.set(def)
			bad(t, r.run(hang, nil), "not configured")
			good(t, r.run(r.named(s, "echo"), echoArgs{"still there"}), "still there")
		})
	}
}

// A server is told of a cancelled call.
func TestCancel(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			srv := testServer()
			begun, ended := make(chan struct{}), make(chan struct{})
			handle(srv, "hang", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				close(begun)
				<-ctx.Done()
				close(ended)
				return nil, ctx.Err()
			})
			r, w := newRig(t), serve(t, kind, srv)
			s := r.set(w.server("srv"))
			hang := r.named(s, "hang")
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-begun; cancel() }()
			if _, err := hang.Run(ctx, nil, tool.Call{ID: "c"}); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			<-ended
			good(t, r.run(r.named(s, "echo"), echoArgs{"still there"}), "still there")
		})
	}
}

// A call that was made before is only made again if that does no harm.
func TestAgain(t *testing.T) {
	srv := testServer()
	var calls atomic.Int64
	count := func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		calls.Add(1)
		return text("ok"), nil
	}
	for name, a := range map[string]*sdk.ToolAnnotations{"plain": nil, "reads": {ReadOnlyHint: true}, "same": {IdempotentHint: true}} {
		srv.AddTool(&sdk.Tool{Name: name, Annotations: a, InputSchema: map[string]any{"type": "object"}}, count)
	}
	r, w := newRig(t), serve(t, SHTTP, srv)
	s := r.set(w.server("srv"))
	again := func(c *tool.Call) { c.Again = true }
	unknown(t, r.run(r.named(s, "plain"), nil, again))
	if n := calls.Load(); n != 0 {
		t.Errorf("%d calls", n)
	}
	good(t, r.run(r.named(s, "reads"), nil, again), "ok")
	good(t, r.run(r.named(s, "same"), nil, again), "ok")
	if r.named(s, "reads").Spec().ReadOnly {
		t.Error("the server is believed")
	}
}

// Servers cannot make us think, ask or show our files.
func TestRequestsOfServersAreRefused(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			srv := testServer()
			handle(srv, "ask", func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				//lint:ignore SA1019 servers still ask for it
				_, sampling := req.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 1, Messages: []*sdk.SamplingMessage{}})
				_, elicit := req.Session.Elicit(ctx, &sdk.ElicitParams{Message: "your password?"})
				//lint:ignore SA1019 servers still ask for it
				roots, err := req.Session.ListRoots(ctx, nil)
				if sampling == nil || elicit == nil || err == nil && len(roots.Roots) > 0 {
					return text("it was answered"), nil
				}
				return text("refused"), nil
			})
			r, w := newRig(t), serve(t, kind, srv)
			good(t, r.run(r.named(r.set(w.server("srv")), "ask"), nil), "refused")
		})
	}
}

// When the connection is lost during a call, its outcome is unknown, and
// it is not made twice.
func TestConnectionLostDuringACall(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			srv := testServer()
			r, w := newRig(t), serve(t, kind, srv)
			var calls atomic.Int64
			closed := make(chan struct{})
			handle(srv, "die", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				if calls.Add(1) == 1 {
					w.http.CloseClientConnections()
					close(closed)
				}
				return text("too late"), nil
			})
			s := r.set(w.server("srv"))
			unknown(t, r.run(r.named(s, "die"), nil))
			if n := calls.Load(); n != 1 {
				t.Errorf("%d calls", n)
			}
			<-closed // until then the client may use a connection that is about to be closed
			r.client.CloseIdleConnections()
			good(t, r.run(r.named(s, "echo"), echoArgs{"back"}), "back")
		})
	}
}

// A server that was restarted does not know our session; the call is made anew.
func TestServerForgotUs(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			srv := testServer()
			r, w := newRig(t), serve(t, kind, srv)
			echo := r.named(r.set(w.server("srv")), "echo")
			for session := range srv.Sessions() {
				_ = session.Close()
			}
			if kind == SSE {
				<-w.streams // until then the server takes calls that it never answers
			}
			good(t, r.run(echo, echoArgs{"again"}), "again")
		})
	}
}

// Refusals of the web server in between are told apart.
func TestStatuses(t *testing.T) {
	r, w := newRig(t), serve(t, SHTTP, testServer())
	s := r.set(w.server("srv"))
	echo := r.named(s, "echo")
	for status, check := range map[int]func(tool.Result){
		400: func(res tool.Result) { bad(t, res, "400 Bad Request") },
		401: func(res tool.Result) { bad(t, res, "401 Unauthorized") },
		429: func(res tool.Result) { bad(t, res, "429") },
		503: func(res tool.Result) { bad(t, res, "503") },
		500: func(res tool.Result) { unknown(t, res) },
		502: func(res tool.Result) { unknown(t, res) },
		504: func(res tool.Result) { unknown(t, res) },
	} {
		w.on(func(rw http.ResponseWriter, req *http.Request) bool {
			b := drain(req)
			if bytes.Contains(b, []byte(`"tools/call"`)) {
				http.Error(rw, "no", status)
				return true
			}
			req.Body = nopCloser{bytes.NewReader(b)}
			return false
		})
		check(r.run(echo, echoArgs{"x"}))
		w.on(nil)
		good(t, r.run(echo, echoArgs{"fine"}), "fine")
	}
}

type nopCloser struct{ *bytes.Reader }

func (nopCloser) Close() error { return nil }

// What is too large to be read is not read to its end.
func TestHuge(t *testing.T) {
	srv := testServer()
	r, w := newRig(t), serve(t, SHTTP, srv)
	s := r.set(w.server("srv"))
	echo := r.named(s, "echo")
	w.on(func(rw http.ResponseWriter, req *http.Request) bool {
		b := drain(req)
		if !bytes.Contains(b, []byte(`"tools/call"`)) {
			req.Body = nopCloser{bytes.NewReader(b)}
			return false
		}
		var call struct{ ID json.RawMessage }
		_ = json.Unmarshal(b, &call)
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, call.ID)
		chunk := bytes.Repeat([]byte("x"), 1<<20)
		for range 64 {
			if _, err := rw.Write(chunk); err != nil {
				return true
			}
		}
		t.Error("all of it was read")
		return true
	})
	bad(t, r.run(echo, echoArgs{"x"}), "16 MiB")
	w.on(nil)
	good(t, r.run(echo, echoArgs{"fine"}), "fine")
}

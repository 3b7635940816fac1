package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/sandbox/local"
	"deckhand/internal/sandbox/sandboxtest"
)

// mind is how a model answers what it is shown.
type mind func(llmtest.Asked) llmtest.Reply

// lab is a server with a model server behind it. Settings belong to users and
// minds to models, so tests that share a lab do not disturb each other.
type lab struct {
	*box
	model  *llmtest.Server
	driver string

	mu       sync.Mutex
	minds    map[string]mind
	asked    map[string][]llmtest.Asked
	searched []string // what the search engine was asked: the key and the body
}

// newLab starts both. config is a config file's text.
func newLab(t *testing.T, config string, args ...string) *lab {
	t.Helper()
	l := &lab{driver: bestDriver(t), minds: map[string]mind{}, asked: map[string][]llmtest.Asked{}}
	l.model = llmtest.New(t, l.answer)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { // users of sandboxes pass through
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	l.box = serve(t, dir, append(append(withSandbox(t, l.driver), "--config", file, "--search-url", website(t, l.search)), args...)...)
	t.Cleanup(func() {
		if got := l.model.Complaints(); len(got) > 0 {
			t.Errorf("a provider would have refused requests: %q", got)
		}
	})
	return l
}

// bestDriver is the local driver, or no sandbox at all on a machine that has none.
var bestDriver = func() func(t *testing.T) string {
	var once sync.Once
	name := "local"
	return func(t *testing.T) string {
		t.Helper()
		once.Do(func() {
			d, err := local.New(local.Options{Dir: t.TempDir(), Runner: sandboxtest.Runner(t)})
			if err == nil {
				err = d.Possible()
				_ = d.Close()
			}
			if err != nil {
				t.Logf("no local sandbox can be had, so commands run without one: %v", err)
				name = "host"
			}
		})
		return name
	}
}()

// workspace is the folder of a conversation as its tools see it.
func (l *lab) workspace(id string) string {
	if l.driver == "local" {
		return "/workspace"
	}
	return filepath.Join(l.dir, "boxes", id, "ws")
}

// answer lets the mind of the model that is asked for speak.
func (l *lab) answer(a llmtest.Asked) llmtest.Reply {
	l.mu.Lock()
	think := l.minds[a.Model]
	l.asked[a.Model] = append(l.asked[a.Model], a)
	l.mu.Unlock()
	if think == nil {
		return llmtest.Reply{Status: http.StatusNotFound, Message: "there is no model " + a.Model}
	}
	return think(a)
}

// search is a search engine that knows one page.
func (l *lab) search(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.searched = append(l.searched, r.URL.Path+" "+r.Header.Get("Authorization")+" "+string(body))
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"results":[{"title":"The page","url":"https://example.org/page","content":"All about knots.","score":0.9}]}`)
}

// person is a user with a model of the same name.
type person struct {
	*box
	lab  *lab
	name string
}

// person makes a user. fields are further settings, as JSON without braces.
func (l *lab) person(t *testing.T, name string, think mind, fields ...string) *person {
	t.Helper()
	made, err := l.client.CreateKey(t.Context(), api.CreateKey{User: api.Some(name)})
	if err != nil {
		t.Fatal(err)
	}
	b := *l.box
	b.t, b.key, b.client = t, made.Secret, client.New(l.base, made.Secret)
	p := &person{box: &b, lab: l, name: name}
	l.mind(name, think)
	fields = append([]string{fmt.Sprintf(`"llm_model":"openai/%s","llm_api_key":"sk-of-%s","llm_base_url":"%s/v1"`, name, name, l.model.URL)}, fields...)
	p.set(strings.Join(fields, ","))
	return p
}

func (l *lab) mind(model string, think mind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.minds[model] = think
}

// set stores settings: JSON without the braces.
func (p *person) set(fields string) { p.t.Helper(); p.post("/api/settings", "{"+fields+"}") }

// settings are what GET shows.
func (p *person) settings() api.Settings {
	p.t.Helper()
	s, err := p.client.Settings(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// requests are what the person's model was asked so far.
func (p *person) requests() []llmtest.Asked {
	p.lab.mu.Lock()
	defer p.lab.mu.Unlock()
	return append([]llmtest.Asked(nil), p.lab.asked[p.name]...)
}

// begin makes a conversation that goes away with the test.
func (p *person) begin(text string) string {
	p.t.Helper()
	id := p.create(text)
	p.t.Cleanup(func() { p.drop(id) })
	return id
}

// drop removes a conversation at the end of a test, whose context has ended, and
// waits until its sandbox is gone: it would outlive the test.
func (p *person) drop(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := p.client.Delete(ctx, id); err != nil && !client.IsNotFound(err) {
		p.t.Error(err)
		return
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(filepath.Join(p.dir, "boxes", id)); errors.Is(err, os.ErrNotExist) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.t.Errorf("the sandbox of %s does not go", id)
			return
		}
	}
}

// dropAll removes every conversation. Those without a sandbox may be about to get one.
func (p *person) dropAll() {
	page, err := p.client.Conversations(context.Background(), url.Values{"limit": {"100"}})
	if err != nil {
		p.t.Error(err)
		return
	}
	for _, one := range page.Results {
		p.drop(one.ConversationID)
	}
}

// ask says something and waits until the agent is in the state; it returns all
// events of the conversation so far.
func (p *person) ask(id, text, state string) []client.LegacyItem {
	p.t.Helper()
	last := int64(0)
	if all := p.events(id); len(all) > 0 {
		last = all[len(all)-1].ID
	}
	if err := p.client.Say(p.t.Context(), id, text, ""); err != nil {
		p.t.Fatal(err)
	}
	p.follow(id, last, agentIs(state))
	return p.events(id)
}

// events reads the log over the API, page by page.
func (p *person) events(id string) []client.LegacyItem {
	p.t.Helper()
	var out []client.LegacyItem
	for next, more := int64(0), true; more; {
		page, err := p.client.LegacyEvents(p.t.Context(), id, url.Values{"start_id": {itoa(next)}, "limit": {"7"}})
		if err != nil {
			p.t.Fatal(err)
		}
		for _, raw := range page.Events {
			it := client.LegacyItem{Event: &api.LegacyEvent{}, Raw: raw}
			if err := json.Unmarshal(raw, it.Event); err != nil {
				p.t.Fatal(err)
			}
			it.ID = it.Event.ID
			out = append(out, it)
		}
		if more = page.HasMore; more {
			next = out[len(out)-1].ID + 1
		}
	}
	return out
}

// toolResult is what a tool gave back, as the model reads it.
type toolResult struct{ tool, text string }

var textResult = regexp.MustCompile(`(?s)<result tool="([^"]+)"[^>]*>\n(.*?)\n</result>`)

// results are those in a request, whether the wire has a place for them or not.
func results(a llmtest.Asked) []toolResult {
	var out []toolResult
	names := map[string]string{}
	for _, m := range a.Messages {
		for _, c := range m.Calls {
			names[c.ID] = c.Name
		}
		switch {
		case m.Role == llm.ToolResult && names[m.Call] != "":
			out = append(out, toolResult{names[m.Call], m.Text})
		case m.Role == llm.ToolResult:
			out = append(out, toolResult{m.Name, m.Text})
		case m.Role == llm.User:
			for _, found := range textResult.FindAllStringSubmatch(m.Text, -1) {
				out = append(out, toolResult{found[1], found[2]})
			}
		}
	}
	return out
}

// saidIn are the texts of people in a request, results aside.
func saidIn(a llmtest.Asked) string {
	var b strings.Builder
	for _, m := range a.Messages {
		if m.Role == llm.User && !strings.HasPrefix(m.Text, "<result") {
			b.WriteString(m.Text + "\n")
		}
	}
	return b.String()
}

// use is a call of a tool.
func use(tool string, args map[string]any) llm.Call {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return llm.Call{Name: tool, Args: raw}
}

// shell is a command.
func shell(command string) llm.Call {
	return use("execute_bash", map[string]any{"command": command})
}

// calls is an answer with nothing but calls, which get ids that are theirs alone.
func calls(a llmtest.Asked, list ...llm.Call) llmtest.Reply {
	for i := range list {
		list[i].ID = fmt.Sprintf("c%d_%d", len(a.Messages), i)
	}
	return llmtest.Reply{Calls: list}
}

// inText is the answer of a model that has to write its calls down.
func inText(r llmtest.Reply) llmtest.Reply {
	for _, c := range r.Calls {
		var args map[string]any
		if err := json.Unmarshal(c.Args, &args); err != nil {
			panic(err)
		}
		r.Text += fmt.Sprintf("\n\n<call tool=%q>\n", c.Name)
		for name, v := range args {
			r.Text += fmt.Sprintf("<arg name=%q>%v</arg>\n", name, v)
		}
		r.Text += "</call>"
	}
	r.Calls = nil
	return r
}

// steps is a mind that makes one call after the other, whatever comes of them,
// and then says that it is done. It begins anew with every message of a person.
func steps(list ...llm.Call) mind {
	return func(a llmtest.Asked) llmtest.Reply {
		n := 0
		for _, m := range a.Messages {
			switch m.Role {
			case llm.User:
				n = 0
			case llm.ToolResult:
				n++
			}
		}
		if n < len(list) {
			return calls(a, list[n])
		}
		return llmtest.Reply{Text: "Done."}
	}
}

// kinds are the actions and observations of a conversation, in a line.
func kinds(items []client.LegacyItem) string {
	var out []string
	for _, it := range items {
		if it.Event.Action != "" {
			out = append(out, it.Event.Action)
		} else if it.Event.Observation != "agent_state_changed" {
			out = append(out, "="+it.Event.Observation)
		}
	}
	return strings.Join(out, " ")
}

// observed is the content of the newest observation of a kind.
func observed(t *testing.T, items []client.LegacyItem, kind string) string {
	t.Helper()
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].Event.Observation == kind {
			return items[i].Event.Content
		}
	}
	t.Fatalf("there is no %s observation in\n%s", kind, describe(items))
	return ""
}

// website is a web server of the test's own.
func website(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

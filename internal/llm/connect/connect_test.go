package connect_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/llm"
	"deckhand/internal/llm/cassette"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/llm/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen is where a model's request would go.
type seen struct {
	url    string
	header http.Header
	body   string
}

// ask opens a model and shows what it would send, without sending it anywhere.
func ask(t *testing.T, c llm.Config, cat *catalogue.Catalogue, req llm.Request) seen {
	t.Helper()
	var got seen
	c.Client = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		b, _ := io.ReadAll(r.Body)
		got = seen{r.URL.String(), r.Header, string(b)}
		return nil, errors.New("nothing is sent")
	})}
	m, err := connect.Open(c, cat)
	if err != nil {
		t.Fatalf("%s: %v", c.Model, err)
	}
	if len(req.Messages) == 0 {
		req.Messages = []llm.Message{{Role: llm.User, Text: "hi"}}
	}
	if req.MaxOutput == 0 {
		req.MaxOutput = 4000
	}
	for range m.Stream(context.Background(), req) {
	}
	return got
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func ptr[T any](v T) *T { return &v }

func TestWays(t *testing.T) {
	cat := catalogue.New(map[string]catalogue.Override{
		"acme/claude": {API: catalogue.Anthropic, BaseURL: "https://llm.acme.example"},
		"openai/new":  {API: catalogue.Responses},
	})
	for _, c := range []struct{ model, base, url, name string }{
		{"openai/gpt-4o", "", "https://api.openai.com/v1/chat/completions", "gpt-4o"},
		{"OpenAI/gpt-4o", "", "https://api.openai.com/v1/chat/completions", "gpt-4o"},
		{"openai/gpt-5.2", "", "https://api.openai.com/v1/responses", "gpt-5.2"},
		{"openai/o3", "https://api.openai.com/v1", "https://api.openai.com/v1/responses", "o3"},
		{"openai/gpt-5", "https://proxy.example/v1", "https://proxy.example/v1/chat/completions", "gpt-5"},
		{"openai/responses/gpt-4o", "https://proxy.example/v1", "https://proxy.example/v1/responses", "gpt-4o"},
		{"openai/new", "", "https://api.openai.com/v1/responses", "new"},
		{"openai/Qwen/Qwen3", "http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1/chat/completions", "Qwen/Qwen3"},
		{"anthropic/claude-sonnet-4-5", "", "https://api.anthropic.com/v1/messages", "claude-sonnet-4-5"},
		{"anthropic/claude-sonnet-4-5", "https://proxy.example", "https://proxy.example/v1/messages", "claude-sonnet-4-5"},
		{"gemini/gemini-2.5-pro", "", "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", ""},
		{"google/gemini-2.5-pro", "", "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", ""},
		{"azure/my-gpt", "https://x.openai.azure.com", "https://x.openai.azure.com/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21", "my-gpt"},
		{"openrouter/anthropic/claude-sonnet-4.5", "", "https://openrouter.ai/api/v1/chat/completions", "anthropic/claude-sonnet-4.5"},
		{"ollama/llama3.3", "", "http://localhost:11434/v1/chat/completions", "llama3.3"},
		{"ollama/llama3.3", "http://10.0.0.5:11434", "http://10.0.0.5:11434/v1/chat/completions", "llama3.3"},
		{"ollama/llama3.3", "http://10.0.0.5:11434/v1/", "http://10.0.0.5:11434/v1/chat/completions", "llama3.3"},
		{"litellm_proxy/anthropic/x", "http://litellm:4000", "http://litellm:4000/chat/completions", "anthropic/x"},
		{"openhands/claude-sonnet-4-5", "https://llm-proxy.example", "https://llm-proxy.example/chat/completions", "claude-sonnet-4-5"},
		{"mistral/mistral-large-2512", "", "https://api.mistral.ai/v1/chat/completions", "mistral-large-2512"},
		{"groq/qwen/qwen3-32b", "", "https://api.groq.com/openai/v1/chat/completions", "qwen/qwen3-32b"},
		{"xai/grok-4.5", "", "https://api.x.ai/v1/chat/completions", "grok-4.5"},
		{"deepseek/deepseek-v4-pro", "", "https://api.deepseek.com/v1/chat/completions", "deepseek-v4-pro"},
		{"together_ai/meta/llama", "", "https://api.together.xyz/v1/chat/completions", "meta/llama"},
		{"fireworks/accounts/fireworks/models/kimi-k3", "", "https://api.fireworks.ai/inference/v1/chat/completions", "accounts/fireworks/models/kimi-k3"},
		{"cerebras/gpt-oss-120b", "", "https://api.cerebras.ai/v1/chat/completions", "gpt-oss-120b"},
		{"huggingface/MiniMaxAI/MiniMax-M3:fireworks-ai", "", "https://router.huggingface.co/v1/chat/completions", "MiniMaxAI/MiniMax-M3:fireworks-ai"},
		{"minimax/MiniMax-M3", "", "https://api.minimax.io/anthropic/v1/messages", "MiniMax-M3"},
		{"bedrock/us.anthropic.claude-x", "https://bedrock.example/openai/v1", "https://bedrock.example/openai/v1/chat/completions", "us.anthropic.claude-x"},
		{"acme/m", "https://llm.acme.example/v1", "https://llm.acme.example/v1/chat/completions", "m"},
		{"acme/claude", "", "https://llm.acme.example/v1/messages", "claude"},
		{"acme/claude", "https://other.example", "https://other.example/v1/messages", "claude"},
		{"local-model", "http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1/chat/completions", "local-model"},
	} {
		got := ask(t, llm.Config{Model: c.model, APIKey: "the-key", BaseURL: c.base}, cat, llm.Request{})
		if got.url != c.url || c.name != "" && !strings.Contains(got.body, `"model":"`+c.name+`"`) {
			t.Errorf("%s at %q: asked %s with %s", c.model, c.base, got.url, got.body)
		}
		var all bytes.Buffer
		_ = got.header.Write(&all)
		if !strings.Contains(all.String(), "the-key") {
			t.Errorf("%s: the key is not sent: %v", c.model, got.header)
		}
	}
	if got := ask(t, llm.Config{Model: "ollama/llama3.3"}, cat, llm.Request{}); strings.Contains(got.header.Get("Authorization"), "Bearer") && len(got.header.Get("Authorization")) > len("Bearer ") {
		t.Errorf("a key out of nowhere: %v", got.header)
	}
}

func TestUnavailable(t *testing.T) {
	cat := catalogue.New(nil)
	for model, want := range map[string]string{
		"acme/m": "set the base URL", "": "provider/model", "gpt-4o": "provider/model", "openai/": "provider/model", "azure/x": "azure.com", "openhands/x": "OpenHands key",
		"litellm_proxy/x": "LiteLLM", "bedrock/x": "of your region", "vertex_ai/x": "service account", "copilot/gpt-4o": "set the base URL", "scripted/nope": "scripted/demo", "cassette/x": "--cassettes",
	} {
		_, err := connect.Open(llm.Config{Model: model}, cat)
		var gone *llm.UnavailableError
		if !errors.As(err, &gone) || gone.Model != model || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", model, err, want)
		}
	}
}

// Whatever the menu offers can be opened, given an address where one is needed.
func TestEveryOfferedModelOpens(t *testing.T) {
	cat := catalogue.New(nil)
	for _, name := range cat.Names() {
		c := llm.Config{Model: name, APIKey: "k", Client: http.DefaultClient}
		switch c.Provider() {
		case "azure":
			c.BaseURL = "https://x.openai.azure.com"
		case "bedrock":
			c.BaseURL = "https://bedrock-runtime.us-east-1.amazonaws.com"
		case "vertexai":
			c.BaseURL = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5"
		}
		if _, err := connect.Open(c, cat); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAddress(t *testing.T) {
	cat := catalogue.New(nil)
	for _, c := range []struct{ a, b llm.Config }{
		{llm.Config{Model: "openai/a", BaseURL: "https://X.example/v1"}, llm.Config{Model: "acme/b", BaseURL: "https://x.example/v2"}},
		{llm.Config{Model: "openai/a"}, llm.Config{Model: "openai/o3"}},
		{llm.Config{Model: "google/a"}, llm.Config{Model: "gemini/b"}},
	} {
		if a, b := connect.Address(c.a, cat), connect.Address(c.b, cat); a != b || a == "" {
			t.Errorf("%+v and %+v go to %q and %q", c.a, c.b, a, b)
		}
	}
	if a, b := connect.Address(llm.Config{Model: "openai/a"}, cat), connect.Address(llm.Config{Model: "anthropic/a"}, cat); a == b {
		t.Errorf("both go to %q", a)
	}
	if a := connect.Address(llm.Config{Model: "scripted/demo"}, cat) + connect.Address(llm.Config{Model: "acme/x"}, cat); a != "" {
		t.Errorf("nothing is sent, but to %q", a)
	}
}

// A model that cannot see is told that there was something to see.
func TestImages(t *testing.T) {
	const png = "data:image/png;base64,iVBORw0KGgo="
	cat := catalogue.New(map[string]catalogue.Override{"acme/sees": {Images: ptr(true)}})
	messages := []llm.Message{{Role: llm.User, Text: "Look", Images: []string{png}}, {Role: llm.Assistant, Text: "ok"}, {Role: llm.User, Images: []string{png, png}}}
	blind := ask(t, llm.Config{Model: "acme/blind", BaseURL: "http://127.0.0.1:1/v1"}, cat, llm.Request{Messages: messages})
	if strings.Contains(blind.body, "iVBOR") || !strings.Contains(blind.body, "An image is attached") || !strings.Contains(blind.body, "2 images are attached") || !strings.Contains(blind.body, "Look") {
		t.Errorf("%s", blind.body)
	}
	if len(messages[0].Images) != 1 || messages[0].Text != "Look" {
		t.Error("the caller's messages were changed")
	}
	if sees := ask(t, llm.Config{Model: "acme/sees", BaseURL: "http://127.0.0.1:1/v1"}, cat, llm.Request{Messages: messages}); !strings.Contains(sees.body, "iVBOR") {
		t.Errorf("%s", sees.body)
	}
}

// A model without tools of its own is told of them in words.
func TestTextTools(t *testing.T) {
	cat := catalogue.New(map[string]catalogue.Override{"acme/plain": {Tools: "text"}})
	req := llm.Request{System: "Work.", Tools: []llm.Tool{{Name: "bash", Description: "Runs a command.", Schema: []byte(`{"type":"object","properties":{"command":{"type":"string"}}}`)}}}
	plain := ask(t, llm.Config{Model: "acme/plain", BaseURL: "http://127.0.0.1:1/v1"}, cat, req)
	if strings.Contains(plain.body, `"tools":`) || !strings.Contains(plain.body, "Runs a command.") {
		t.Errorf("%s", plain.body)
	}
	if native := ask(t, llm.Config{Model: "acme/native", BaseURL: "http://127.0.0.1:1/v1"}, cat, req); !strings.Contains(native.body, `"tools":`) {
		t.Errorf("%s", native.body)
	}
}

// Over real HTTP: every wire answers, and its window is known from the catalogue.
func TestProbedOverEveryWire(t *testing.T) {
	server := llmtest.New(t, llmtest.Able(""))
	for wire, name := range map[llmtest.Wire]string{llmtest.Chat: "gpt-4o", llmtest.Responses: "gpt-5", llmtest.Anthropic: "claude-sonnet-4-5", llmtest.Gemini: "gemini-2.5-pro"} {
		t.Run(string(wire), func(t *testing.T) {
			c := server.Config(wire, name)
			tr := &http.Transport{}
			defer tr.CloseIdleConnections()
			c.Client = &http.Client{Transport: tr}
			cat := catalogue.New(nil)
			m, err := connect.Open(c, cat)
			if err != nil {
				t.Fatal(err)
			}
			info := cat.Info(c.Model)
			report := probe.Run(t.Context(), m, info, probe.Options{})
			for _, check := range report.Checks {
				if check.OK == nil || !*check.OK {
					t.Errorf("%s: %s", check.Name, check.Message)
				}
			}
			if !report.OK {
				t.Error("not ok")
			}
			for p, err := range m.Stream(t.Context(), llm.Request{MaxOutput: 2000, Messages: []llm.Message{{Role: llm.User, Text: "hi"}}}) {
				if err != nil {
					t.Fatal(err)
				}
				if p.Done != nil && (p.Done.Usage.Window != info.Window || info.Window == 0) {
					t.Errorf("window %d, known %d", p.Done.Usage.Window, info.Window)
				}
			}
		})
	}
	for _, complaint := range server.Complaints() {
		t.Error(complaint)
	}
}

func TestCassettes(t *testing.T) {
	dir := cassette.Dir(t.TempDir())
	o := connect.Connector{Catalogue: catalogue.New(nil), Cassettes: dir}
	demo, err := o.Open(llm.Config{Model: "scripted/demo"})
	if err != nil {
		t.Fatal(err)
	}
	req := llm.Request{Conversation: "first", Messages: []llm.Message{{Role: llm.User, Text: "hi"}}}
	var want, got string
	for p := range dir.Record(demo, nil).Stream(t.Context(), req) {
		want += p.Text
	}
	m, err := o.Open(llm.Config{Model: "cassette/first"})
	if err != nil {
		t.Fatal(err)
	}
	for p, err := range m.Stream(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		got += p.Text
	}
	if got != want || want == "" {
		t.Errorf("played %q, recorded %q", got, want)
	}
}

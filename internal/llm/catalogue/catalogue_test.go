package catalogue

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/llm/scripted"
)

func TestInfo(t *testing.T) {
	sonnet := llm.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}
	for _, c := range []struct {
		model  string
		window int64
		price  llm.Price
		priced bool
		why    string
	}{
		{"anthropic/claude-sonnet-4-20250514", 200_000, sonnet, true, "as it is listed"},
		{" Anthropic/Claude-Sonnet-4-20250514", 200_000, sonnet, true, "in any case"},
		{"anthropic/claude-sonnet-4-5", 200_000, sonnet, true, "without its date"},
		{"anthropic/claude-sonnet-4-5-latest", 200_000, sonnet, true, "the latest issue"},
		{"openhands/claude-sonnet-4-20250514", 200_000, sonnet, true, "resold at the vendor's price"},
		{"litellm_proxy/claude-sonnet-4-5-20250929", 200_000, sonnet, true, "through a proxy"},
		{"litellm_proxy/anthropic/claude-sonnet-4-5-20250929", 200_000, sonnet, true, "through a proxy, with its vendor"},
		{"litellm_proxy/prod/anthropic/claude-sonnet-4-5", 200_000, sonnet, true, "deep in a proxy's names"},
		{"bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, sonnet, true, "as a cloud lists it"},
		{"bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, sonnet, true, "as a cloud names it"},
		{"bedrock/converse/apac.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000, sonnet, true, "in another region"},
		{"vertex_ai/claude-sonnet-4-5@20250929", 200_000, sonnet, true, "with another cloud's date"},
		{"openrouter/anthropic/claude-sonnet-4.5", 1_000_000, sonnet, true, "in the market's own list"},
		{"azure/gpt-4o", 128_000, llm.Price{Input: 2.5, Output: 10, CacheRead: 1.25, CacheWrite: 2.5}, true, "in a cloud's own list"},
		{"azure/gpt-4o-2024-08-06", 128_000, llm.Price{Input: 2.5, Output: 10, CacheRead: 1.25, CacheWrite: 2.5}, true, "an issue of it"},
		{"openai/gpt-4o-2024-05-13", 128_000, llm.Price{Input: 5, Output: 15, CacheRead: 5, CacheWrite: 5}, true, "an issue that is dearer than its family"},
		{"openai/responses/gpt-5", 400_000, llm.Price{Input: 1.25, Output: 10, CacheRead: 0.125, CacheWrite: 1.25}, true, "how to ask does not matter"},
		{"gemini/gemini-2.5-pro", 1_048_576, llm.Price{Input: 1.25, Output: 10, CacheRead: 0.125, CacheWrite: 1.25}, true, "another vendor"},
		{"google/gemini-2.5-pro", 1_048_576, llm.Price{Input: 1.25, Output: 10, CacheRead: 0.125, CacheWrite: 1.25}, true, "under its other name"},
		{"deepseek/deepseek-v4-flash", 1_000_000, llm.Price{Input: 0.14, Output: 0.28, CacheRead: 0.0028, CacheWrite: 0.14}, true, "a list that has the price of reading in the other field"},
		{"groq/qwen/qwen3-32b", 131_072, llm.Price{Input: 0.29, Output: 0.59, CacheRead: 0.29, CacheWrite: 0.29}, true, "no price for the cache: that of input"},
		{"fireworks_ai/accounts/fireworks/models/kimi-k3", 1_048_576, llm.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3}, true, "a provider's other name"},
		{"huggingface/minimaxai/minimax-m3:fireworks-ai", 512_000, llm.Price{Input: 0.3, Output: 1.2, CacheRead: 0.3, CacheWrite: 0.3}, true, "a name with capitals"},
		{"openrouter/openai/gpt-oss-20b:free", 131_072, llm.Price{}, true, "free by its name"},
		{"copilot/gpt-4o", 0, llm.Price{}, false, "0 in a list is not a price"},
		{"huggingface/Qwen/Qwen3.8-2.4T-A95B:fireworks-ai", 262_144, llm.Price{}, false, "0 in a list is not a price"},
		{"mistral/mistral-large-2512", 262_144, llm.Price{}, false, "the market's price is not the provider's"},
		{"acme/gpt-4o", 128_000, llm.Price{}, false, "the price of another provider is not known"},
		{"acme/claude-sonnet-4-5", 200_000, llm.Price{}, false, "the price of another provider is not known"},
		{"openai/ft:gpt-4o:acme", 0, llm.Price{}, false, "a model of one's own has a price of its own"},
		{"ollama/llama3.3", 0, llm.Price{}, false, "a local model has no price by itself"},
		{"acme/unheard-of", 0, llm.Price{}, false, "unknown"},
		{"unheard-of", 0, llm.Price{}, false, "no provider"},
		{"", 0, llm.Price{}, false, "nothing"},
		{"/", 0, llm.Price{}, false, "nothing"},
		{"scripted/demo", 1_000_000, llm.Price{}, true, "the script is free"},
		{"cassette/some-recording", 1_000_000, llm.Price{}, true, "a recording is free"},
	} {
		got := New(nil).Info(c.model)
		if c.window != 0 && got.Window != c.window || got.Priced != c.priced || !near(got.Price, c.price) {
			t.Errorf("%s (%s): window %d, price %+v, known %t; want %d, %+v, %t", c.model, c.why, got.Window, got.Price, got.Priced, c.window, c.price, c.priced)
		}
		if !got.Tools {
			t.Errorf("%s: no tools", c.model)
		}
	}
}

func near(a, b llm.Price) bool {
	d := func(x, y float64) bool { return x-y < 1e-9 && y-x < 1e-9 }
	return d(a.Input, b.Input) && d(a.Output, b.Output) && d(a.CacheRead, b.CacheRead) && d(a.CacheWrite, b.CacheWrite)
}

func TestAbilities(t *testing.T) {
	c := New(nil)
	if got := c.Info("anthropic/claude-sonnet-4-5"); !got.Images || !got.Thinks || got.MaxOutput != 64_000 {
		t.Errorf("%+v", got)
	}
	if got := c.Info("groq/qwen/qwen3-32b"); got.Images {
		t.Errorf("a model that reads only: %+v", got)
	}
	if got := c.Info("openai/gpt-4o"); got.Thinks {
		t.Errorf("a model that answers at once: %+v", got)
	}
	if got := c.Info("acme/unheard-of"); got.Images || got.Thinks {
		t.Errorf("no entry says that it can: %+v", got)
	}
}

func ptr[T any](v T) *T { return &v }

func TestOverrides(t *testing.T) {
	c := New(map[string]Override{
		"Ollama/Llama3.3":             {Window: ptr[int64](8192), MaxOutput: ptr[int64](1024), Tools: "text", Images: ptr(true), Input: ptr(0.0), Output: ptr(0.0)},
		"anthropic/claude-sonnet-4-5": {Input: ptr(4.0), Output: ptr(20.0)},
		"acme/m":                      {Input: ptr(2.0), Output: ptr(3.0), CacheRead: ptr(0.0), CacheWrite: ptr(1.0)},
		"openai/gpt-4o":               {Images: ptr(false), Thinks: ptr(true)},
	})
	if got := c.Info("ollama/llama3.3"); got != (llm.Info{Window: 8192, MaxOutput: 1024, Priced: true, Images: true}) {
		t.Errorf("%+v", got)
	}
	if got := c.Info("Anthropic/claude-sonnet-4-5"); !near(got.Price, llm.Price{Input: 4, Output: 20, CacheRead: 4, CacheWrite: 5}) || got.Window != 200_000 || !got.Thinks {
		t.Errorf("what is not said must stay: %+v", got)
	}
	if got := c.Info("acme/m"); !near(got.Price, llm.Price{Input: 2, Output: 3, CacheWrite: 1}) || !got.Priced || !got.Tools {
		t.Errorf("%+v", got)
	}
	if got := c.Info("openai/gpt-4o"); got.Images || !got.Thinks || !got.Priced {
		t.Errorf("%+v", got)
	}
	names := c.Names()
	for _, want := range []string{"ollama/llama3.3", "acme/m", "anthropic/claude-sonnet-4-5"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not listed", want)
		}
	}
}

func TestMistakesInOverrides(t *testing.T) {
	for _, c := range []struct {
		o    Override
		want string
	}{
		{Override{Window: ptr[int64](0)}, "window"},
		{Override{MaxOutput: ptr[int64](-1)}, "max_output"},
		{Override{Tools: "maybe"}, "native or text"},
		{Override{API: "soap"}, "chat, responses, anthropic or gemini"},
		{Override{BaseURL: "ftp://x"}, "http"},
		{Override{BaseURL: "localhost:1"}, "http"},
		{Override{Input: ptr(1.0)}, "0 is allowed"},
		{Override{Output: ptr(1.0)}, "0 is allowed"},
		{Override{Input: ptr(1.0), Output: ptr(-1.0)}, "0 or more"},
		{Override{CacheRead: ptr(1.0)}, "also needs input and output"},
	} {
		if err := c.o.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
	if err := (Override{Window: ptr[int64](1), Tools: "text", API: Gemini, BaseURL: "http://127.0.0.1:1/x", Input: ptr(0.0), Output: ptr(0.0)}).Check(); err != nil {
		t.Error(err)
	}
}

func TestNames(t *testing.T) {
	names := New(nil).Names()
	if len(names) < 500 || !slices.Equal(names[:2], scripted.Models) || !slices.IsSorted(names[2:]) {
		t.Fatalf("%d names, first %v", len(names), names[:3])
	}
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Error("a name occurs twice")
	}
	for _, n := range names {
		if p, _ := Split(n); p != "scripted" {
			if _, ok := New(nil).Provider(p); !ok {
				t.Errorf("%s is offered, but its provider cannot be reached", n)
			}
		}
	}
	if !slices.Contains(names, "huggingface/MiniMaxAI/MiniMax-M3:fireworks-ai") {
		t.Error("names must be spelled as the provider does")
	}
}

func TestProviders(t *testing.T) {
	for name, want := range map[string]Provider{
		"anthropic": {Anthropic, ""}, "OpenAI": {Chat, ""}, "google": {Gemini, ""}, "azure": {Chat, ""}, "mistral": {Chat, "https://api.mistral.ai/v1"},
		"groq": {Chat, "https://api.groq.com/openai/v1"}, "together_ai": {Chat, "https://api.together.xyz/v1"}, "ollama": {Chat, "http://localhost:11434/v1"},
		"openrouter": {Chat, "https://openrouter.ai/api/v1"}, "minimax": {Anthropic, "https://api.minimax.io/anthropic"},
		"bedrock": {Bedrock, ""}, "bedrock-europe": {Bedrock, ""}, "vertex_ai": {Vertex, "https://aiplatform.googleapis.com"},
	} {
		if got, ok := New(nil).Provider(name); !ok || got != want {
			t.Errorf("%s: %+v, %t", name, got, ok)
		}
	}
	for _, name := range []string{"copilot", "acme", ""} {
		if got, ok := New(nil).Provider(name); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Every listed price must be usable for a limit: nothing of it costs less than nothing or is left out.
func TestListedPricesHold(t *testing.T) {
	for _, e := range embeddedIndex().entries {
		p := e.price
		if !e.priced || strings.HasSuffix(e.name, ":free") {
			continue
		}
		if p.Input <= 0 || p.Output <= 0 || p.CacheRead <= 0 || p.CacheRead > p.Input || p.CacheWrite < p.Input {
			t.Errorf("%s: %+v", e.name, p)
		}
		if e.window <= 0 {
			t.Errorf("%s has no window", e.name)
		}
	}
}

// The catalogue of an idle server must not show in its memory.
func TestMemory(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	idx := makeIndex()
	after := heap()
	if kept := int64(after) - int64(before); kept > 1<<20 {
		t.Errorf("the index keeps %d bytes for %d models", kept, len(idx.entries))
	} else {
		t.Logf("%d bytes for %d models", kept, len(idx.entries))
	}
	runtime.KeepAlive(idx)
}

func FuzzInfo(f *testing.F) {
	for _, s := range []string{"anthropic/claude-sonnet-4-5", "bedrock/us.anthropic.x-v1:0", "///", "a/b/c@latest", "openai/responses/", "\xff/\x00"} {
		f.Add(s)
	}
	c := New(nil)
	f.Fuzz(func(t *testing.T, model string) {
		if got := c.Info(model); !got.Tools || got.Price.Input < 0 || got.Window < 0 {
			t.Errorf("%q: %+v", model, got)
		}
	})
}

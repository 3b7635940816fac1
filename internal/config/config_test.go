package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/llm/catalogue"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "deckhand.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func ref[T any](v T) *T { return &v }

func TestModelsInTheConfigFile(t *testing.T) {
	t.Parallel()
	c, err := Read(write(t, `
addr: 127.0.0.1:1
models:
  Ollama/Qwen3:
    window: 32768
    max_output: 4096
    tools: text
    images: false
    thinks: true
    input: 0
    output: 0
  acme/m: {api: anthropic, base_url: "https://llm.example/", window: 100000}
  acme/priced: {input: 1, output: 2.5, cache_read: 0.1}
prices:
  acme/M: {input: 3, output: 15, cache_write: 4}
  anthropic/some: {input: 4, output: 8}
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.flags) != 1 || c.flags["addr"] != "127.0.0.1:1" {
		t.Errorf("flags: %v", c.flags)
	}
	want := map[string]catalogue.Override{
		"ollama/qwen3":   {Window: ref[int64](32768), MaxOutput: ref[int64](4096), Tools: "text", Images: ref(false), Thinks: ref(true), Input: ref(0.0), Output: ref(0.0)},
		"acme/m":         {API: catalogue.Anthropic, BaseURL: "https://llm.example/", Window: ref[int64](100000), Input: ref(3.0), Output: ref(15.0), CacheWrite: ref(4.0)},
		"acme/priced":    {Input: ref(1.0), Output: ref(2.5), CacheRead: ref(0.1)},
		"anthropic/some": {Input: ref(4.0), Output: ref(8.0)},
	}
	if !reflect.DeepEqual(c.Models, want) {
		t.Errorf("models: %+v", c.Models)
	}
	prices := map[string]llm.Price{
		"ollama/qwen3":   {},
		"acme/m":         {Input: 3, Output: 15, CacheRead: 3, CacheWrite: 4},
		"acme/priced":    {Input: 1, Output: 2.5, CacheRead: 0.1, CacheWrite: 1},
		"anthropic/some": {Input: 4, Output: 8, CacheRead: 4, CacheWrite: 5},
	}
	got := map[string]llm.Price{}
	for model, o := range c.Models {
		if p, ok := o.Price(model); ok {
			got[model] = p
		}
	}
	if !reflect.DeepEqual(got, prices) {
		t.Errorf("prices: %+v", got)
	}
}

func TestMistakesInTheConfigFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"addr: a\naddr: b":                                "line 2 sets addr again",
		"- a":                                             "settings as name: value",
		"just a text":                                     "settings as name: value",
		"models: 5":                                       "a map from model names",
		"models: [a/b]":                                   "a map from model names",
		"models: {a/b: 5}":                                "window",
		"models: {a/b: {windw: 5}}":                       "windw",
		"models: {a/b: {window: big}}":                    "window",
		"models: {a/b: {window: 0}}":                      "1 or more",
		"models: {a/b: {tools: perhaps}}":                 "native or text",
		"models: {a/b: {images: perhaps}}":                "images",
		"models: {a/b: {api: soap}}":                      "chat, responses, anthropic or gemini",
		"models: {a/b: {base_url: llm.example}}":          "http",
		"models: {a/b: {input: 1}}":                       "0 is allowed",
		"models: {a/b: {input: -1, output: 1}}":           "0 or more",
		"models: {b: {window: 5}}":                        "provider/model",
		"models: {a/b: {window: 5}, A/B: {}}":             "twice",
		"prices: {a/b: {input: 1}}":                       "0 is allowed",
		"prices: {a/b: {input: .nan, output: 1}}":         "0 or more",
		"prices: {a/b: {input: .inf, output: 1}}":         "0 or more",
		"prices: {a/b: {input: x, output: 1}}":            "dollars",
		"prices: {a/b: {input: 1, output: 1, window: 5}}": "unknown field",
		"models: {a/b: {input: 1, output: 1}}\nprices: {a/b: {input: 1, output: 1}}": "twice",
	} {
		_, err := Read(write(t, text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"models:", "prices:", "models: {}", "models: {a/b: {}}"} {
		if _, err := Read(write(t, text+"\n")); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Flags of several commands also work before the command.
func TestFlagsBeforeTheCommand(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"--server URL list":              "list --server URL",
		"--server=URL --plain-http list": "list --server=URL --plain-http",
		"--data-dir D key list":          "key list --data-dir D",
		"--data-dir D run -- -x":         "run --data-dir D -- -x",
		"--server URL":                   "session --server URL",
		"--server URL --resume ID":       "session --server URL --resume ID",
		"--server":                       "session --server",
		"--data-dir D -c":                "session --data-dir D -c",
		"--config F list":                "--config F list",
		"list --server URL":              "list --server URL",
	} {
		if got := strings.Join(AsTyped(strings.Fields(typed)), " "); got != want {
			t.Errorf("%s is %s instead of %s", typed, got, want)
		}
	}
}

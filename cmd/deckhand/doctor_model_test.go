package main

import (
	"os"
	"strings"
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
)

// goodModel answers as a model does that agents can work with, if the key is right.
func goodModel(a llmtest.Asked) llmtest.Reply {
	switch last := a.Messages[len(a.Messages)-1]; {
	case a.Header.Get("Authorization") != "Bearer sk-right-key":
		return llmtest.Reply{Status: 401, Code: "invalid_api_key", Message: "Incorrect API key provided: " + strings.TrimPrefix(a.Header.Get("Authorization"), "Bearer ")}
	case len(a.Tools) > 0:
		return llmtest.Reply{Calls: []llm.Call{{ID: "c1", Name: "note", Args: []byte(`{"word":"apple"}`)}}}
	case len(last.Images) > 0:
		return llmtest.Reply{Text: "Red"}
	}
	return llmtest.Reply{Text: "one two three four five six seven"}
}

func TestDoctorTriesTheModel(t *testing.T) {
	t.Parallel()
	server := llmtest.New(t, goodModel)
	b := serve(t, "")
	if err := os.Chmod(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	check := func(want int, args ...string) string {
		t.Helper()
		code, out, errs := command(t, append([]string{"doctor", "--model", "--data-dir", b.dir, "--addr", "127.0.0.1:0"}, plainSandbox(t, args)...)...)
		if code != want {
			t.Errorf("%v: %d %s%s", args, code, out, errs)
		}
		if strings.Contains(out+errs, "-key") {
			t.Errorf("a key is shown: %s%s", out, errs)
		}
		return out
	}
	if out := check(1, "--user", "nobody"); !strings.Contains(out, "nobody has no stored settings") {
		t.Errorf("%s", out)
	}
	store := func(key string) {
		t.Helper()
		if status, body, _ := b.raw("POST", "/api/settings", `{"llm_model":"openai/gpt-4o","llm_api_key":"`+key+`","llm_base_url":"`+server.URL+`/v1"}`); status != 200 {
			t.Fatal(body)
		}
	}
	store("sk-wrong-key")
	if out := check(1); !strings.Contains(out, "FAIL  model") || !strings.Contains(out, "API key is missing or invalid") {
		t.Errorf("%s", out)
	}
	store("sk-right-key")
	out := check(0)
	for _, want := range []string{"ok    model            openai/gpt-4o", "  reachable", "  tools", "  images", "All checks passed."} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing: %s", want, out)
		}
	}
}

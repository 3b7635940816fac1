package main

import (
	"os"
	"strings"
	"testing"

	"deckhand/internal/llm/llmtest"
)

func TestDoctorTriesTheModel(t *testing.T) {
	t.Parallel()
	server := llmtest.New(t, llmtest.Able("sk-right-key"))
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

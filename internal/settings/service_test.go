package settings

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"deckhand/api"
	"deckhand/internal/gitprovider"
	"deckhand/internal/secret"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func keyring(t testing.TB) *secret.Keyring {
	t.Helper()
	k, err := secret.OpenKeyring(context.Background(), t.TempDir(), "", secret.NewMemKeys())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// canaries is full with a value in every secret place that can be searched for.
func canaries(t testing.TB) (string, []string) {
	var found []string
	body := full
	for i, v := range []string{"sk-llm", "ghp-1", "glpat", "npm-1", "pypi-1", "k-sse", "env-a", "env-b", "k-sh", "sk-search", "sk-sandbox"} {
		c := fmt.Sprintf("Canary-%02d-Xq7Lm", i)
		if !strings.Contains(body, `"`+v+`"`) {
			t.Fatal(v)
		}
		body = strings.ReplaceAll(body, `"`+v+`"`, `"`+c+`"`)
		found = append(found, c)
	}
	return body, found
}

func wantNoCanary(t *testing.T, what string, b []byte, values []string) {
	t.Helper()
	for _, v := range values {
		// Inside longer base64 text the ends of a value look different; the middle does not.
		for shift := range 3 {
			text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + v))
			if bytes.Contains(b, []byte(text[4:len(text)-4])) {
				t.Errorf("%s has %s in base64", what, v)
			}
		}
		if bytes.Contains(b, []byte(v)) || bytes.Contains(bytes.ToLower(b), []byte(hex.EncodeToString([]byte(v)))) {
			t.Errorf("%s has %s", what, v)
		}
	}
}

func TestEncodeShowsNoSecret(t *testing.T) {
	body, values := canaries(t)
	s, _, err := update(nil, body)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.SecretValues(); len(got) != len(values) {
		t.Errorf("%d secrets, want %d", len(got), len(values))
	}
	keys := keyring(t)
	enc, err := Encode(t.Context(), keys, "ann", s)
	if err != nil {
		t.Fatal(err)
	}
	wantNoCanary(t, "the stored form", enc, values)
	view, _ := json.Marshal(View(s))
	wantNoCanary(t, "the view", view, values)
	wantNoCanary(t, "printing", fmt.Appendf(nil, "%v %+v %#v", s, s, s), values)
	plain, _ := json.Marshal(s)
	wantNoCanary(t, "plain JSON", plain, values)

	got, err := Decode(t.Context(), keys, "ann", enc)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(dump(s), dump(got)); diff != "" {
		t.Error(diff)
	}
	if _, err := Decode(t.Context(), keys, "bob", enc); !errors.Is(err, secret.ErrTampered) {
		t.Errorf("as another user: %v", err)
	}
}

// Write access to the database must not allow using a secret elsewhere.
func TestDecodeRefusesMovedSecrets(t *testing.T) {
	s, _, _ := update(nil, full)
	keys := keyring(t)
	edits := map[string]func(map[string]any){
		"llm_base_url": func(m map[string]any) { m["llm_base_url"] = "https://evil.example" },
		"provider host": func(m map[string]any) {
			m["provider_tokens"].(map[string]any)["gitlab"].(map[string]any)["host"] = "evil.example"
		},
		"swapped keys": func(m map[string]any) {
			m["search_api_key"], m["sandbox_api_key"] = m["sandbox_api_key"], m["search_api_key"]
		},
		"renamed secret": func(m map[string]any) {
			c := m["custom_secrets"].(map[string]any)
			c["OTHER"] = c["PYPI"]
		},
		"key as mcp": func(m map[string]any) { m["mcp_config"] = m["search_api_key"] },
	}
	for name, edit := range edits {
		enc, err := Encode(t.Context(), keys, "ann", s)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		_ = json.Unmarshal(enc, &m)
		edit(m)
		enc, _ = json.Marshal(m)
		if _, err := Decode(t.Context(), keys, "ann", enc); !errors.Is(err, secret.ErrTampered) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, body := range []string{`{}`, `{"format":99}`, `nope`} {
		if _, err := Decode(t.Context(), keys, "ann", []byte(body)); err == nil {
			t.Errorf("%s is accepted", body)
		}
	}
}

func pick[T any](t *rapid.T, label string, values ...T) api.Opt[T] {
	switch rapid.IntRange(0, 3).Draw(t, label+" kind") {
	case 0:
		return api.Opt[T]{}
	case 1:
		return api.Null[T]()
	default:
		return api.Some(rapid.SampledFrom(values).Draw(t, label))
	}
}

func someFlag(t *rapid.T, label string) api.Opt[bool] {
	v := pick(t, label, true, false)
	if v.Null {
		return api.Opt[bool]{}
	}
	return v
}

// randomInput is a valid update of anything.
func randomInput(t *rapid.T) api.SettingsInput {
	key := rapid.StringMatching(`[!-~]{1,30}`)
	in := api.SettingsInput{
		Language:                            pick(t, "language", "", "en", "pt-BR"),
		Agent:                               pick(t, "agent", append(Agents, "")...),
		MaxIterations:                       pick(t, "max_iterations", 1, 50, 100000),
		CondenserMaxSize:                    pick(t, "condenser_max_size", 20, 120, 100000),
		SecurityAnalyzer:                    pick(t, "security_analyzer", append(SecurityAnalyzers, "")...),
		ConfirmationMode:                    pick(t, "confirmation_mode", true, false),
		LLMModel:                            pick(t, "llm_model", "", "a/b", "c"),
		LLMAPIKey:                           pick(t, "llm_api_key", "", key.Draw(t, "key")),
		LLMBaseURL:                          pick(t, "llm_base_url", "", "http://a:1", "https://b/v1"),
		RemoteRuntimeResourceFactor:         pick(t, "factor", 1, 2, 4, 8),
		EnableDefaultCondenser:              someFlag(t, "condenser"),
		EnableSoundNotifications:            someFlag(t, "sound"),
		EnableProactiveConversationStarters: someFlag(t, "starters"),
		EnableSolvabilityAnalysis:           someFlag(t, "solvability"),
		UserConsentsToAnalytics:             pick(t, "analytics", true, false),
		SandboxBaseContainerImage:           pick(t, "base", "", "debian:13"),
		SandboxRuntimeContainerImage:        pick(t, "runtime", "", "ghcr.io/a/b@sha256:"+strings.Repeat("0", 64)),
		SearchAPIKey:                        pick(t, "search", "", key.Draw(t, "key")),
		SandboxAPIKey:                       pick(t, "sandbox", "", key.Draw(t, "key")),
		MaxBudgetPerTask:                    pick(t, "budget", 0, 0.1, 1e9),
		Email:                               pick(t, "email", "", "a@b.c"),
		EmailVerified:                       pick(t, "verified", true, false),
		GitUserName:                         pick(t, "name", "", "Ada é"),
		GitUserEmail:                        pick(t, "git email", "", "a@b"),
	}
	secrets := api.UserSecrets{ProviderTokens: map[string]*api.ProviderToken{}, CustomSecrets: map[string]*api.CustomSecret{}}
	for _, p := range rapid.SliceOfDistinct(rapid.SampledFrom(gitprovider.Names()), rapid.ID).Draw(t, "providers") {
		secrets.ProviderTokens[p] = &api.ProviderToken{Token: pick(t, p, "", key.Draw(t, "token")), Host: pick(t, p+" host", "", "h.example", "h:8443"), UserID: pick(t, p+" id", "", "u")}
		if v, ok := secrets.ProviderTokens[p].Token.Get(); ok && v == api.Masked {
			secrets.ProviderTokens[p] = nil
		}
	}
	name := rapid.StringMatching(`[A-Z_][A-Z0-9_]{0,5}`).Filter(func(n string) bool { return !reserved[n] })
	for _, n := range rapid.SliceOfDistinct(name, rapid.ID).Draw(t, "names") {
		secrets.CustomSecrets[n] = &api.CustomSecret{Secret: api.Some(key.Draw(t, "secret") + "x"), Description: pick(t, n, "", "d\ne")}
	}
	in.SecretsStore = pick(t, "secrets_store", secrets)
	var cfg api.MCPConfig
	for i := range rapid.IntRange(0, 3).Draw(t, "servers") {
		k := key.Draw(t, "api_key") + "x"
		timeout := 60
		cfg.SSEServers = append(cfg.SSEServers, api.MCPServer{URL: fmt.Sprint("https://h/", i), APIKey: rapid.SampledFrom([]*string{nil, &k}).Draw(t, "sse key")})
		cfg.SHTTPServers = append(cfg.SHTTPServers, api.MCPServer{URL: fmt.Sprint("https://h/", i+1), APIKey: rapid.SampledFrom([]*string{nil, &k}).Draw(t, "shttp key"), Timeout: rapid.SampledFrom([]*int{nil, &timeout}).Draw(t, "timeout")})
		cfg.StdioServers = append(cfg.StdioServers, api.StdioServer{Name: fmt.Sprint("s", i), Command: "x", Args: []string{"a b", ""}, Env: map[string]string{"A": k, "B": ""}})
	}
	in.MCPConfig = pick(t, "mcp_config", cfg)
	return in
}

// What GET gave, sent back, changes nothing; and what is stored is read back the same.
func TestRoundTrips(t *testing.T) {
	keys := keyring(t)
	rapid.Check(t, func(t *rapid.T) {
		s := Defaults()
		for range rapid.IntRange(1, 3).Draw(t, "updates") {
			next, _, err := Merge(&s, randomInput(t))
			if err != nil {
				t.Fatal(err)
			}
			s = next
		}
		view, err := json.Marshal(View(s))
		if err != nil {
			t.Fatal(err)
		}
		var in api.SettingsInput
		if err := json.Unmarshal(view, &in); err != nil {
			t.Fatalf("%s: %v", view, err)
		}
		if len(in.Unknown()) > 0 {
			t.Fatalf("%v would be reported as ignored", in.Unknown())
		}
		again, changes, err := Merge(&s, in)
		if err != nil || len(changes.Notes) > 0 {
			t.Fatal(changes, err)
		}
		if diff := cmp.Diff(s, again); diff != "" {
			t.Fatal(diff, cmp.Diff(dump(s), dump(again)))
		}
		enc, err := Encode(context.Background(), keys, "ann", s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(context.Background(), keys, "ann", enc)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(dump(s), dump(back)); diff != "" {
			t.Fatal(diff)
		}
		// An update survives being encoded by a client.
		wire, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var resent api.SettingsInput
		if err := json.Unmarshal(wire, &resent); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(in, resent, cmp.AllowUnexported(api.SettingsInput{}), cmpopts.IgnoreFields(api.SettingsInput{}, "readOnly"), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A user's secrets are masked for that user alone, from the moment they are stored until
// they are removed.
func TestMaskerFollowsSettings(t *testing.T) {
	t.Parallel()
	store, keys := NewMemStore(), keyring(t)
	svc, beside := New(store, keys, secret.NewRedactor()), New(store, keys, secret.NewRedactor())
	svc.SingleProcess = true
	masked := func(when, user string, s *Service, want bool) {
		t.Helper()
		m, err := s.Masker(t.Context(), user)
		if err != nil || (m.String("<hunter2-hunter2>") != "<hunter2-hunter2>") != want {
			t.Errorf("%s, for %s: %v, wanted %t", when, user, err, want)
		}
	}
	store1 := `{"secrets_store":{"custom_secrets":{"A":"hunter2-hunter2","B":"other-value-1"}}}`
	masked("before the first", "ann", svc, false)
	if _, err := svc.Update(t.Context(), "ann", parse(t, store1)); err != nil {
		t.Fatal(err)
	}
	masked("stored", "ann", svc, true)
	masked("stored", "ann", beside, true)
	masked("stored", "bob", svc, false)
	// A round trip keeps it: what GET shows says that nothing changes.
	if _, err := svc.Update(t.Context(), "ann", parse(t, `{"secrets_store":{"custom_secrets":{"A":"`+api.Masked+`","B":"`+api.Masked+`"}}}`)); err != nil {
		t.Fatal(err)
	}
	masked("sent back", "ann", svc, true)
	if err := svc.Change(t.Context(), "ann", func(s *Settings) error { return s.RemoveSecret("A") }); err != nil {
		t.Fatal(err)
	}
	masked("removed", "ann", svc, false)
	masked("removed", "ann", beside, false)
	if _, err := beside.Update(t.Context(), "ann", parse(t, store1)); err != nil {
		t.Fatal(err)
	}
	svc.Forget("ann")
	masked("stored by a command beside the server", "ann", svc, true)
	svc.Hold("ann", "box", "hunter2-hunter2")
	if err := svc.Change(t.Context(), "ann", func(s *Settings) error { return s.RemoveSecret("A") }); err != nil {
		t.Fatal(err)
	}
	masked("removed but in use", "ann", svc, true)
	svc.Release("box")
	masked("not in use", "ann", svc, false)
	// More than one user may have is refused by name, and what was stored before can stay.
	large := strings.Repeat("0123456789abcde-", 4<<10)
	for i := range 4 {
		err := svc.Change(t.Context(), "ann", func(s *Settings) error {
			return s.AddSecret("L"+strconv.Itoa(i), large[:60<<10]+strconv.Itoa(i), "", api.Opt[[]string]{})
		})
		var bad *api.ValidationError
		if refused := errors.As(err, &bad); refused != (i >= 2) || err != nil && !refused {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestService(t *testing.T) {
	body, values := canaries(t)
	red, store, keys := secret.NewRedactor(), NewMemStore(), keyring(t)
	svc := New(store, keys, red)
	if _, err := svc.Get(t.Context(), "ann"); !errors.Is(err, ErrNotFound) {
		t.Errorf("before the first: %v", err)
	}
	if _, err := svc.Update(t.Context(), "ann", parse(t, body)); err != nil {
		t.Fatal(err)
	}
	wantNoCanary(t, "the store", store.recs["ann"].Body, values)
	if got := red.String(strings.Join(values, " ")); strings.Contains(got, "Canary") {
		t.Errorf("the redactor does not know %s", got)
	}
	s, err := svc.Get(t.Context(), "ann")
	if err != nil || s.LLMAPIKey.Reveal() != values[0] {
		t.Fatal(err)
	}
	// The caller may change what it got.
	*s.Language = "xx"
	delete(s.CustomSecrets, "PYPI")
	if again, _ := svc.Get(t.Context(), "ann"); *again.Language != "en" || len(again.CustomSecrets) != 2 {
		t.Error("the cache was changed from outside")
	}
	var bad *api.ValidationError
	if _, err := svc.Update(t.Context(), "ann", parse(t, `{"max_iterations":0,"language":"de"}`)); !errors.As(err, &bad) {
		t.Error(err)
	}
	if store.recs["ann"].Version != 1 {
		t.Error("a refused update was stored")
	}
	changes, err := svc.Update(t.Context(), "ann", parse(t, `{"llm_base_url":"https://other.example"}`))
	if err != nil || len(changes.Notes) != 1 {
		t.Error(changes, err)
	}
	if _, err := svc.Get(t.Context(), "bob"); !errors.Is(err, ErrNotFound) {
		t.Errorf("another user: %v", err)
	}

	// Another process: it sees what is stored, and we see what it stores.
	otherRed := secret.NewRedactor()
	other := New(store, keys, otherRed)
	if o, err := other.Get(t.Context(), "ann"); err != nil || !o.LLMAPIKey.IsZero() || otherRed.String(values[1]) != secret.Mask {
		t.Errorf("%v", err)
	}
	if _, err := other.Update(t.Context(), "ann", parse(t, `{"language":"fr"}`)); err != nil {
		t.Fatal(err)
	}
	if s, _ := svc.Get(t.Context(), "ann"); *s.Language != "fr" {
		t.Error("an old cached value was returned")
	}
}

func TestUpdatesAtOnce(t *testing.T) {
	store, keys := NewMemStore(), keyring(t)
	// Two services stand for two processes.
	svcs := []*Service{New(store, keys, secret.NewRedactor()), New(store, keys, secret.NewRedactor())}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			body := fmt.Sprintf(`{"secrets_store":{"custom_secrets":{"S%d":"value"}}}`, i)
			if _, err := svcs[i%2].Update(t.Context(), "ann", parse(t, body)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Go(func() {
		if _, err := svcs[0].Update(t.Context(), "ann", parse(t, `{"language":"de"}`)); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	s, err := svcs[1].Get(t.Context(), "ann")
	if err != nil || len(s.CustomSecrets) != 8 || s.Language == nil || *s.Language != "de" {
		t.Errorf("%d secrets, %v", len(s.CustomSecrets), err)
	}
}

// busyStore is always ahead of us.
type busyStore struct{ *MemStore }

func (busyStore) SaveSettings(context.Context, Record) error { return ErrConflict }

func TestUpdateGivesUp(t *testing.T) {
	svc := New(busyStore{NewMemStore()}, keyring(t), secret.NewRedactor())
	if _, err := svc.Update(t.Context(), "ann", api.SettingsInput{}); !errors.Is(err, ErrConflict) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := svc.Update(ctx, "ann", api.SettingsInput{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestCacheIsBounded(t *testing.T) {
	svc := New(NewMemStore(), keyring(t), secret.NewRedactor())
	for i := range maxCached + 5 {
		svc.remember(fmt.Sprint(i), nil, 0, Settings{})
	}
	if len(svc.cache) > maxCached {
		t.Errorf("%d cached", len(svc.cache))
	}
}

func BenchmarkGet(b *testing.B) {
	svc := New(NewMemStore(), keyring(b), secret.NewRedactor())
	if _, err := svc.Update(b.Context(), "ann", parse(b, full)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := svc.Get(b.Context(), "ann"); err != nil {
			b.Fatal(err)
		}
	}
}

// Package giteatest fills a real Gitea for tests: users, tokens, repositories,
// commits, issues, pull requests, reviews and webhooks, all through its API. It
// does not start one: `make forge-test` does, and names it in the environment.
package giteatest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

// The variables that name a forge, as `scripts/forge start` prints them.
const (
	AddressVariable = "DECKHAND_FORGE"
	TokenVariable   = "DECKHAND_FORGE_TOKEN"
)

// Forge is a running Gitea, in the hands of its administrator.
type Forge struct {
	URL    string // http://127.0.0.1:port
	token  string
	client *http.Client
}

// Open finds the forge that the environment names. Building one takes too long
// for every run, so tests that need it have the build tag forge and a run of
// their own, make forge-test.
func Open(t testing.TB) *Forge {
	t.Helper()
	address, token := os.Getenv(AddressVariable), os.Getenv(TokenVariable)
	if address == "" || token == "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no forge is named by %s and %s; run make forge-test", AddressVariable, TokenVariable)
		}
		t.Skipf("SKIPPED: no forge is named by %s and %s; run make forge-test", AddressVariable, TokenVariable)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &Forge{strings.TrimRight(address, "/"), token, &http.Client{Transport: transport}}
}

// User is an account with a token that has all permissions.
type User struct {
	ID                            int64
	Login, Email, Password, Token string

	forge *Forge
}

// User makes an account with a name that is unique on the forge, so that tests do not interfere.
func (f *Forge) User(t testing.TB, name string) *User {
	t.Helper()
	u := &User{Login: name + "-" + strings.ToLower(rand.Text()[:8]), Password: rand.Text(), forge: f}
	u.Email = u.Login + "@forge.example"
	var made struct {
		ID int64 `json:"id"`
	}
	f.call(t, request{"POST", "/admin/users", "token " + f.token, map[string]any{
		"username": u.Login, "email": u.Email, "password": u.Password, "full_name": strings.ToUpper(name), "must_change_password": false,
	}}, &made)
	u.ID = made.ID
	u.Token = u.NewToken(t, "all")
	return u
}

// NewToken makes a further token, which may do only what its scopes name:
// "read:user", "write:repository", … or "all".
func (u *User) NewToken(t testing.TB, scopes ...string) string {
	t.Helper()
	var made struct {
		Token string `json:"sha1"`
	}
	// Gitea gives out tokens for a password only.
	basic := &http.Request{Header: http.Header{}}
	basic.SetBasicAuth(u.Login, u.Password)
	u.forge.call(t, request{"POST", "/users/" + u.Login + "/tokens", basic.Header.Get("Authorization"), map[string]any{
		"name": rand.Text(), "scopes": scopes,
	}}, &made)
	return made.Token
}

// Call asks the API as the user, for what has no method here: path is below
// /api/v1, in and out may be nil. What is not a success fails the test.
func (u *User) Call(t testing.TB, method, path string, in, out any) {
	t.Helper()
	u.forge.call(t, request{method, path, "token " + u.Token, in}, out)
}

type request struct {
	method, path, authorization string
	in                          any
}

func (f *Forge) call(t testing.TB, r request, out any) {
	t.Helper()
	body, err := json.Marshal(r.in)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), r.method, f.URL+"/api/v1"+r.path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", r.authorization)
	req.Header.Set("Content-Type", "application/json")
	res, err := f.client.Do(req)
	if err != nil {
		t.Fatalf("the forge does not answer: %v", err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode/100 != 2 {
		t.Fatalf("the forge answers %s %s with %s: %.300s", r.method, r.path, res.Status, answer)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			t.Fatalf("%s %s: %v", r.method, r.path, err)
		}
	}
}

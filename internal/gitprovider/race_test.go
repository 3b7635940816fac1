package gitprovider

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestFirst(t *testing.T) {
	const never = time.Hour
	no := errors.New("no")
	type one struct {
		after time.Duration
		err   error
	}
	for _, c := range []struct {
		name string
		all  []one
		at   int
		took time.Duration
	}{
		{"no providers", nil, -1, 0},
		{"not found", []one{{time.Second, no}, {0, no}}, -1, time.Second},
		{"the first of two", []one{{time.Second, nil}, {0, nil}}, 0, time.Second},
		{"no wait for later ones", []one{{0, nil}, {never, nil}, {never, no}}, 0, 0},
		{"a bounded wait for earlier ones", []one{{never, nil}, {time.Second, nil}, {never, nil}}, 1, 3 * time.Second},
		{"who fails is not waited for", []one{{time.Second, no}, {0, nil}}, 1, time.Second},
		{"the better of two that are late", []one{{never, nil}, {2 * time.Second, nil}, {time.Second, nil}}, 1, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			value, at, errs := First(t.Context(), len(c.all), func(ctx context.Context, i int) (int, error) {
				select {
				case <-time.After(c.all[i].after):
					return i, c.all[i].err
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			})
			if took := time.Since(begin); at != c.at || at >= 0 && value != at || took != c.took || len(errs) != len(c.all) {
				t.Errorf("%s: %d of %d, %v after %s", c.name, value, at, errs, took)
			}
			for i, err := range errs {
				if err != nil && err != no || at < 0 && err == nil {
					t.Errorf("%s: %d failed with %v", c.name, i, err)
				}
			}
		})
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A host that is down costs those who have nothing to do with it a moment, and
// is not asked a second time without the token.
func TestVerifyDespiteASilentHost(t *testing.T) {
	for _, c := range []struct {
		repository, found string
		took              time.Duration
	}{{"team/a", "github", patience}, {"team/none", "", 10 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			client := &http.Client{Timeout: 10 * time.Second, Transport: transport(func(r *http.Request) (*http.Response, error) {
				if r.Host == "silent.example" {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				w := httptest.NewRecorder()
				if r.URL.Path == "/team/a.git/info/refs" {
					w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
				} else {
					w.WriteHeader(http.StatusNotFound)
				}
				return w.Result(), nil
			})}
			tokens := map[string]Token{"bitbucket": {"t", "silent.example"}, "gitea": {"t", "silent.example"}, "github": {"t", "good.example"}, "gitlab": {"t", "silent.example"}}
			begin := time.Now()
			got, err := Verify(t.Context(), client, tokens, "", c.repository, "")
			if took := time.Since(begin); got != c.found || (err == nil) != (c.found != "") || took != c.took {
				t.Errorf("%s: %q, %v after %s", c.repository, got, err, took)
			}
		})
	}
}

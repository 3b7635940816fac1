package forge

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"sync"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// probe is a question that only one kind of host answers, and how to see that it did.
type probe struct {
	adapter string
	path    string
	fields  []string // all of them are in the answer
	header  string   // or this one is set, which is so even when the token is not accepted
}

var probes = []probe{
	{"gitlab", "/api/v4/version", []string{"version", "revision"}, "X-Gitlab-Meta"},
	{"gitea", "/api/v1/version", []string{"version"}, ""},
	{"github", "/api/v3/meta", []string{"verifiable_password_authentication"}, "X-Github-Request-Id"},
	{"bitbucket", "/rest/api/1.0/application-properties", []string{"version", "buildNumber", "displayName"}, "X-Arequestid"},
}

// cloud are hosts whose API is elsewhere, so that they need not be asked.
var cloud = map[string]string{
	"github.com": "github", "gitlab.com": "gitlab", "bitbucket.org": "bitbucket", "gitea.com": "gitea", "codeberg.org": "gitea",
}

// detect asks a host what it is.
func detect(ctx context.Context, o call.Options, site *url.URL) (adapter string, err error) {
	if known := cloud[site.Host]; known != "" {
		return known, nil
	}
	c := call.New(o, "", func(site *url.URL) *url.URL { return site }, func(h http.Header) {
		if o.Token != "" {
			h.Set("Authorization", "Bearer "+o.Token)
		}
	})
	var worst error // what the user should hear if nothing matches
	for _, p := range probes {
		var fields map[string]json.RawMessage
		answer, err := c.Get(ctx, p.path, nil, &fields)
		switch {
		case answer.Status == 0: // nobody is there: the other questions would wait as long
			return "", err
		case p.matches(answer, err, fields):
			return p.adapter, nil
		case telling(err) && !telling(worst), answer.Status >= 500 && worst == nil:
			worst = err
		}
	}
	if worst != nil {
		return "", worst
	}
	unknown := c.Fail(gitprovider.Unsupported, "")
	unknown.Message = site.Host + " answers like none of the git hosts that are known here (GitHub, GitLab, Bitbucket, Gitea, Forgejo). Look at the host in the settings."
	return "", unknown
}

func (p probe) matches(a call.Answer, err error, fields map[string]json.RawMessage) bool {
	if p.header != "" && a.Header.Get(p.header) != "" {
		return true
	}
	for _, name := range p.fields {
		if _, ok := fields[name]; !ok {
			return false
		}
	}
	return err == nil
}

// telling is an error that says more than that the host is of another kind.
func telling(err error) bool {
	switch gitprovider.ReasonOf(err) {
	case gitprovider.BadToken, gitprovider.Scope, gitprovider.RateLimited:
		return true
	}
	return false
}

const (
	remembered = time.Hour
	maxHosts   = 1024 // users choose them, so they are bounded
)

// memory is what hosts said they are.
type memory struct {
	mu    sync.Mutex
	hosts map[string]entry
}

type entry struct {
	adapter string
	until   time.Time
}

// hosts is shared by all users: what a host is does not depend on who asks.
var hosts = &memory{hosts: map[string]entry{}}

func (m *memory) flavour(ctx context.Context, o call.Options) (string, error) {
	site, err := o.Site("")
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	known, ok := m.hosts[site.String()]
	m.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known.adapter, nil
	}
	adapter, err := detect(ctx, o, site)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.hosts) >= maxHosts {
		clear(m.hosts)
	}
	m.hosts[site.String()] = entry{adapter, time.Now().Add(remembered)}
	return adapter, nil
}

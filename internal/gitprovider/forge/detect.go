package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/gitprovider/call"
)

// probing returns the providers that can be detected, in the order of their requests.
func probing() []call.Adapter {
	able := slices.DeleteFunc(slices.Clone(adapters), func(a call.Adapter) bool { return a.Probe == nil })
	slices.SortStableFunc(able, func(a, b call.Adapter) int { return cmp.Compare(a.Probe.Order, b.Probe.Order) })
	return able
}

// detect detects the kind of a host.
func detect(ctx context.Context, o call.Options, site *url.URL) (adapter string, err error) {
	// Public hosts have their API elsewhere, and need not be probed.
	if i := slices.IndexFunc(adapters, func(a call.Adapter) bool { return a.Host == site.Host }); i >= 0 {
		return adapters[i].Name, nil
	}
	c := call.New(o, "", func(site *url.URL) *url.URL { return site }, func(h http.Header) {
		if o.Token != "" {
			h.Set("Authorization", "Bearer "+o.Token)
		}
	})
	var worst error // the error for the user if nothing matches
	for _, a := range probing() {
		var fields map[string]json.RawMessage
		answer, err := c.Get(ctx, a.Probe.Path, nil, &fields)
		switch {
		case answer.Status == 0: // unreachable: other probes would time out too
			return "", err
		case matches(a.Probe, answer, err, fields):
			return a.Name, nil
		case telling(err) && !telling(worst), answer.Status >= 500 && worst == nil:
			worst = err
		}
	}
	if worst != nil {
		return "", worst
	}
	unknown := c.Fail(gitprovider.Unsupported, "")
	unknown.Message = site.Host + " answers like none of the git hosts that are known here (" + strings.Join(titles(), ", ") + "). Look at the host in the settings."
	return "", unknown
}

func titles() (all []string) {
	for _, a := range adapters {
		if !a.Generic {
			all = append(all, a.Title)
		}
	}
	return all
}

func matches(p *gitprovider.Probe, a call.Answer, err error, fields map[string]json.RawMessage) bool {
	if p.Header != "" && a.Header.Get(p.Header) != "" {
		return true
	}
	for _, name := range p.Fields {
		if _, ok := fields[name]; !ok {
			return false
		}
	}
	return err == nil
}

// telling reports whether an error says more than that the host is of another kind.
func telling(err error) bool {
	switch gitprovider.ReasonOf(err) {
	case gitprovider.BadToken, gitprovider.Scope, gitprovider.RateLimited:
		return true
	}
	return false
}

const (
	remembered = time.Hour
	maxHosts   = 1024 // chosen by users, so limited
)

// memory caches the kinds of hosts.
type memory struct {
	mu    sync.Mutex
	hosts map[string]entry
}

type entry struct {
	adapter string
	until   time.Time
}

// hosts is shared by all users: the kind of a host does not depend on the user.
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

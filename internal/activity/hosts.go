package activity

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Hosts remembers how the last request to each of a number of hosts went. The zero value is ready.
type Hosts struct {
	mu  sync.Mutex
	all map[string]*Host
}

// Host is how the last request to a host went.
type Host struct {
	Name string
	At   time.Time
	// Problem is "" if the host responded, "network" if it could not be reached, and "server" if it failed.
	Problem string
}

// maxHosts bounds the number of hosts that are remembered: users choose them.
const maxHosts = 50

// Client is a client whose requests are watched.
func (h *Hosts) Client(c *http.Client) *http.Client {
	watched := *c
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	watched.Transport = &watchedTransport{next, h}
	return &watched
}

type watchedTransport struct {
	next  http.RoundTripper
	hosts *Hosts
}

// RoundTrip implements http.RoundTripper.
func (t *watchedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	switch {
	case errors.Is(err, context.Canceled): // it says nothing about the host
	case err != nil:
		t.hosts.record(r.URL.Host, "network", time.Now())
	case response.StatusCode >= http.StatusInternalServerError:
		t.hosts.record(r.URL.Host, "server", time.Now())
	default: // a refusal is about the user's token
		t.hosts.record(r.URL.Host, "", time.Now())
	}
	return response, err
}

// CloseIdleConnections lets http.Client.CloseIdleConnections through.
func (t *watchedTransport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (h *Hosts) record(name, problem string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[string]*Host{}
	}
	if h.all[name] == nil && len(h.all) >= maxHosts {
		var oldest *Host
		for _, x := range h.all {
			if oldest == nil || x.At.Before(oldest.At) {
				oldest = x
			}
		}
		delete(h.all, oldest.Name)
	}
	h.all[name] = &Host{Name: name, At: at, Problem: problem}
}

// List lists the hosts by name.
func (h *Hosts) List() []Host {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []Host
	for _, x := range h.all {
		all = append(all, *x)
	}
	slices.SortFunc(all, func(a, b Host) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

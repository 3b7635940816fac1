package main

import (
	"io"
	"net/http"
	"strings"

	"deckhand/internal/load"
)

// asker sends one request again and again on one connection, with the keys of several users
// in turn.
type asker interface {
	ask() error
	close()
}

// newAsker makes one: Go's own HTTP client, which is what creators are made of,
// or a lean one that only moves bytes.
func newAsker(lean bool, addr, path string, keys []string, body string) (asker, error) {
	if !lean {
		return &creator{client: &http.Client{Transport: &http.Transport{}}, url: "http://" + addr + path, keys: keys, body: body}, nil
	}
	l, err := load.Dial(addr)
	a := &leanAsker{link: l}
	for _, key := range keys {
		a.requests = append(a.requests, load.Message("POST", path, addr, key, body))
	}
	return a, err
}

type leanAsker struct {
	link     *load.Link
	requests [][]byte
	n        int
}

func (a *leanAsker) ask() error {
	a.n++
	_, err := a.link.Ask(a.requests[a.n%len(a.requests)])
	return err
}

func (a *leanAsker) close() { a.link.Close() }

type creator struct {
	client *http.Client
	url    string
	keys   []string
	n      int
	body   string
}

func (c *creator) ask() error {
	req, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(c.body))
	if err != nil {
		return err
	}
	c.n++
	req.Header.Set("X-Session-API-Key", c.keys[c.n%len(c.keys)])
	req.Header.Set("Content-Type", "application/json")
	res, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = &load.StatusError{Status: res.StatusCode, Body: string(answer)}
	}
	return err
}

func (c *creator) close() { c.client.CloseIdleConnections() }

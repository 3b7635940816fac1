package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// asker sends one request again and again on one connection.
type asker interface {
	ask() error
	close()
}

// newAsker makes one: Go's own HTTP client, which is what creators are made of,
// or a lean one that only moves bytes.
func newAsker(lean bool, addr, path, key, body string) (asker, error) {
	if !lean {
		return &creator{client: &http.Client{Transport: &http.Transport{}}, url: "http://" + addr + path, key: key, body: body}, nil
	}
	l, err := dial(addr)
	return &leanAsker{link: l, request: message("POST", path, addr, key, body)}, err
}

type leanAsker struct {
	link    *link
	request []byte
}

func (a *leanAsker) ask() error {
	_, err := a.link.ask(a.request)
	return err
}

func (a *leanAsker) close() { a.link.close() }

type creator struct {
	client         *http.Client
	url, key, body string
}

func (c *creator) ask() error {
	req, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(c.body))
	if err != nil {
		return err
	}
	req.Header.Set("X-Session-API-Key", c.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("answered %d: %.200s", res.StatusCode, answer)
	}
	return err
}

func (c *creator) close() { c.client.CloseIdleConnections() }

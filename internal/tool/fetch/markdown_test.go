package fetch

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// Pages that are made to be hard are read as plain words, and stay short.
func TestHardPages(t *testing.T) {
	at := &url.URL{Scheme: "https", Host: "example.com"}
	for name, c := range map[string]struct{ page, begins string }{
		"many elements":  {strings.Repeat("<p>x</p>", maxNodes), "x\nx\n"},
		"nested lists":   {strings.Repeat("<ul><li>x", 60) + strings.Repeat("y ", 1<<16), "x\nx\n"},
		"nested quotes":  {strings.Repeat("<blockquote>", 200) + strings.Repeat("y<br>", 1000), "y\ny\n"},
		"deep text":      {strings.Repeat("<div>", 300) + strings.Repeat("word ", 1<<16), "word word"},
		"wide table":     {"<table><tr>" + strings.Repeat("<td>a", 1000) + strings.Repeat("<tr><td>x", 1000), "a a a"},
		"long cell":      {"<table>" + strings.Repeat("<tr><td>x", 1000) + strings.Repeat("y", 20_000), "x\nx\n"},
		"spanning cells": {"<table>" + strings.Repeat("<tr><td colspan=1000 rowspan=1000>a", 100), "| "},
	} {
		got, err := markdown([]byte(c.page), at)
		if err != nil || !strings.HasPrefix(got, c.begins) || len(got) > len(c.page) {
			t.Errorf("%s: %d bytes, %v: %.60q", name, len(got), err, got)
		}
	}
	if _, err := markdown([]byte(strings.Repeat("<div>", 5000)), at); err == nil {
		t.Error("a page of any depth is read")
	}
}

func TestPlain(t *testing.T) {
	words := "<p>One <b>bold</b> <a href=x>link</a>.</p><table><tr><th>k<td>v</tr></table>"
	got, err := markdown([]byte("<title>T</title>"+words+strings.Repeat("<i></i>", maxNodes)), &url.URL{})
	if want := "# T\n\nOne bold link.\nk v"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("<main><p>x<table><tr><td colspan=9>y"), "text/html", false)
	f.Add([]byte("<!doctype html><svg><p>\xff"), "text/html; charset=koi8-r", false)
	f.Add([]byte("<template><p>x</template><b><i></b></i>"), "application/xhtml+xml", false)
	f.Add([]byte("\xfe\xff\x00a"), "text/plain", true)
	f.Add([]byte("x"), ";", true)
	f.Fuzz(func(t *testing.T, body []byte, kind string, raw bool) {
		got, err := read(body, kind, &url.URL{Scheme: "http", Host: "example.com"}, raw)
		if err == nil && (!utf8.ValidString(got) || strings.ContainsRune(got, 0) && raw) {
			t.Errorf("got %q", got)
		}
		p := page{url: "u", text: got}
		if r := p.part(0, 10); !utf8.ValidString(r.Text) {
			t.Errorf("got %q", r.Text)
		}
	})
}

package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"deckhand/internal/tool"
)

// read makes a text of what came. What is no text is an error.
func read(body []byte, contentType string, at *url.URL, raw bool) (string, error) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind = "text/plain"
	}
	if !readable(kind) {
		return "", fmt.Errorf("content type %s is not text; download it with the shell", kind)
	}
	decoded, err := decode(body, contentType)
	if err != nil || bytes.IndexByte(decoded, 0) >= 0 {
		return "", errors.New("the content is binary, not text; download it with the shell")
	}
	if raw || kind != "text/html" && kind != "application/xhtml+xml" {
		return strings.ToValidUTF8(string(decoded), "\uFFFD"), nil
	}
	return markdown(decoded, at)
}

// decode turns a page into UTF-8, from what its head or the page itself says it is.
func decode(body []byte, contentType string) ([]byte, error) {
	encoding, name, certain := charset.DetermineEncoding(body[:min(len(body), 1024)], contentType)
	// The guess for what says nothing looks at the beginning alone.
	if name == "utf-8" || !certain && utf8.Valid(body) {
		return bytes.TrimPrefix(body, []byte("\uFEFF")), nil
	}
	return io.ReadAll(encoding.NewDecoder().Reader(bytes.NewReader(body)))
}

// readable says whether a kind of content is a text.
func readable(kind string) bool {
	switch kind {
	case "application/json", "application/xml", "application/xhtml+xml", "application/javascript", "application/x-javascript", "application/ecmascript",
		"application/yaml", "application/x-yaml", "application/toml", "application/sql", "application/graphql", "application/x-sh", "application/x-ndjson",
		"application/jsonl", "application/x-httpd-php", "application/rtf", "image/svg+xml":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "+yaml")
}

// part shows a part of the page, and says how to get the next.
func (p page) part(start, length int) tool.Result {
	total := utf8.RuneCountInString(p.text)
	if total == 0 {
		return tool.Result{Text: p.url + " is empty."}
	}
	if start >= total {
		return tool.Failf("%s has %d characters, so nothing begins at start_index %d.", p.url, total, start)
	}
	from := offset(p.text, start)
	shown := p.text[from:][:offset(p.text[from:], length)]
	out := "Contents of " + p.url + ":\n\n" + shown
	end := start + utf8.RuneCountInString(shown)
	switch {
	case end < total:
		out += fmt.Sprintf("\n\n[Characters %d to %d of %d. Fetch it again with start_index %d for more.]", start, end, total, end)
	case p.cut:
		out += fmt.Sprintf("\n\n[The page is longer than %d MB; the rest was not read.]", maxBody>>20)
	}
	return tool.Result{Text: out}
}

// offset is where the nth character begins.
func offset(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

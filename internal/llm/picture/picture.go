// Package picture fetches images and converts them to data: URLs, which is how models get
// them: a provider may not be able to reach an image, and should not learn its URL.
package picture

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"deckhand/internal/llm"
)

// MaxBytes is the maximum size of an image.
const MaxBytes = 5 << 20

// timeout is the timeout for fetching an image.
const timeout = 20 * time.Second

// Fetcher fetches images and caches the newest. It is safe for concurrent use.
type Fetcher struct {
	// Client makes the requests; it checks every address that it dials.
	Client *http.Client
	// Keep is how many bytes of data: URLs are kept (default 64 MB).
	Keep int

	shared
}

// DataURL is the image at an address as a data: URL: png, jpeg, gif or webp by
// its content, whatever it is called, and no larger than MaxBytes. A data: URL is
// checked and passed on. An error is a sentence for people. Concurrent calls for
// the same address share one request, which ends when the last of them gave up.
func (f *Fetcher) DataURL(ctx context.Context, address string) (string, error) {
	if strings.HasPrefix(address, "data:") {
		return checked(address)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("the image must be an http(s) or data: URL")
	}
	if u.User != nil {
		return "", errors.New("the image URL must not contain a password")
	}
	return f.share(ctx, f.keep(), address, f.fetch)
}

func (f *Fetcher) keep() int {
	if f.Keep > 0 {
		return f.Keep
	}
	return 64 << 20
}

// checked is a data: URL with the type that its content has.
func checked(address string) (string, error) {
	_, content, ok := llm.SplitDataURL(address)
	if !ok {
		return "", errors.New("the image's data: URL must be of the form data:image/png;base64,CONTENT")
	}
	if base64.StdEncoding.DecodedLen(len(content)) > MaxBytes+2 { // the end may be padding
		return "", errLarge
	}
	data, err := base64.StdEncoding.DecodeString(content)
	if err != nil {
		return "", errors.New("the content of the image's data: URL is not valid base64")
	}
	return encoded(data)
}

var errLarge = fmt.Errorf("the image is larger than %d MB", MaxBytes>>20)

// encoded makes a data: URL of an image.
func encoded(data []byte) (string, error) {
	if len(data) > MaxBytes {
		return "", errLarge
	}
	switch kind := http.DetectContentType(data); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data), nil
	default:
		kind, _, _ = strings.Cut(kind, ";")
		return "", fmt.Errorf("the image must be a PNG, JPEG, GIF or WebP; its content looks like %s", kind)
	}
}

// fetch gets an image.
func (f *Fetcher) fetch(ctx context.Context, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", fmt.Errorf("the image URL cannot be used: %w", err)
	}
	req.Header.Set("Accept", "image/png, image/jpeg, image/gif, image/webp")
	res, err := f.Client.Do(req)
	if err != nil {
		return "", unreachable(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the image could not be fetched: the server responded with %s", strings.TrimSpace(res.Status))
	}
	if res.ContentLength > MaxBytes {
		return "", errLarge
	}
	var data bytes.Buffer
	if _, err := data.ReadFrom(io.LimitReader(res.Body, MaxBytes+1)); err != nil {
		return "", unreachable(err)
	}
	return encoded(data.Bytes())
}

// unreachable says why an image could not be fetched, without its address,
// which may have a secret in it.
func unreachable(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the image could not be fetched: the server did not respond within %.0f seconds", timeout.Seconds())
	}
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("the image could not be fetched: %w", err)
}

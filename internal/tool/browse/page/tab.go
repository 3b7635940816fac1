package page

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"deckhand/internal/clip"
	"deckhand/internal/tool/browse/devtools"
)

// Tab is a page. All but the first fields are protected by the browser's lock.
type Tab struct {
	browser *Browser
	id      target.ID
	session string

	url, title string
	ready      bool // it tells of itself
	gone       bool
	crashed    bool
	loading    bool
	moves      int // how often it went elsewhere
	drag       *input.DragData
}

const (
	// settleTime is how long a page gets, by its own clock, to begin what it was
	// made to do.
	settleTime = 50 * time.Millisecond
	// loadTime is how long the rest of a page is waited for before it is looked at.
	loadTime = 10 * time.Second
	// historyTime is how long a step in the history may take to begin.
	historyTime = 5 * time.Second
)

// Goto opens an address and waits until the page is there.
func (t *Tab) Goto(ctx context.Context, url string) error {
	r, err := call(ctx, t, page.Navigate, page.NavigateParams{URL: url})
	if err != nil {
		t.stop(ctx, err)
		return err
	}
	switch {
	case r.IsDownload:
		return nil
	case r.ErrorText != "":
		return &LoadError{url, r.ErrorText}
	}
	return t.Settle(ctx)
}

// stop ends the loading of a page that took too long: otherwise the next call would wait for it
// again.
func (t *Tab) stop(ctx context.Context, err error) {
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = call(ctx, t, page.StopLoading, cdp.Empty{})
}

// LoadError is why a page could not be opened, in the browser's words.
type LoadError struct{ URL, Reason string }

func (e *LoadError) Error() string {
	what := fmt.Sprintf("%s could not be opened: %s", excerpt(e.URL, 200), e.Reason)
	switch {
	case strings.HasPrefix(e.Reason, "net::ERR_TUNNEL_CONNECTION_FAILED"), strings.HasPrefix(e.Reason, "net::ERR_PROXY_"):
		what += ". The sandbox's way out refused the connection: its network policy does not allow the host, or the host does not answer"
	case e.Reason == "net::ERR_CONNECTION_REFUSED":
		what += ". Nothing listens there"
	}
	return what
}

// Back goes one page back, or forward if steps is 1.
func (t *Tab) Back(ctx context.Context, steps int64) error {
	h, err := call(ctx, t, page.GetNavigationHistory, cdp.Empty{})
	if err != nil {
		return err
	}
	at := h.CurrentIndex + steps
	if at < 0 || at >= int64(len(h.Entries)) {
		return errors.New("there is no page in that direction")
	}
	return t.move(ctx, func() error {
		_, err := call(ctx, t, page.NavigateToHistoryEntry, page.NavigateToHistoryEntryParams{EntryID: h.Entries[at].ID})
		return err
	})
}

// Reload opens the page again.
func (t *Tab) Reload(ctx context.Context) error {
	return t.move(ctx, func() error {
		_, err := call(ctx, t, page.Reload, page.ReloadParams{})
		return err
	})
}

// move does something that leads to a page, and waits until it is there.
func (t *Tab) move(ctx context.Context, do func() error) error {
	b := t.browser
	b.mu.Lock()
	before := t.moves
	b.mu.Unlock()
	if err := do(); err != nil {
		return err
	}
	soon, cancel := context.WithTimeout(ctx, historyTime)
	defer cancel()
	if err := b.until(soon, func() bool { return t.moves != before || t.gone || t.crashed }); err != nil && soon.Err() == nil {
		return err
	}
	return t.Settle(ctx)
}

// Settle waits until the page has done what it was made to do: until its
// handlers have run and, if they led elsewhere, until that has been loaded. What
// takes too long is not waited for.
func (t *Tab) Settle(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	wait := fmt.Sprintf("new Promise(done => setTimeout(done, %d))", settleTime.Milliseconds())
	if err := t.evaluate(bounded, wait, nil); errors.Is(err, devtools.ErrClosed) {
		return err // whatever else it is, the page went elsewhere in the meantime
	}
	err := t.browser.until(bounded, func() bool { return !t.loading || t.gone || t.crashed })
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		t.browser.mu.Lock()
		t.browser.note("The page is still loading.")
		t.browser.mu.Unlock()
		return nil
	}
	return err
}

// Lost says whether there is no page any more.
func (t *Tab) Lost() bool {
	t.browser.mu.Lock()
	defer t.browser.mu.Unlock()
	return t.gone || t.crashed
}

// Replace closes a tab that has crashed, once there is another.
func (b *Browser) Replace(ctx context.Context, t *Tab) error {
	if _, err := b.NewTab(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	gone := t.gone
	b.mu.Unlock()
	if gone {
		return nil
	}
	return b.shut(ctx, t)
}

// evaluate runs an expression of this package in the page and reads its value.
func (t *Tab) evaluate(ctx context.Context, expression string, out any) error {
	yes := true
	r, err := call(ctx, t, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, ReturnByValue: &yes, AwaitPromise: &yes})
	if err != nil {
		return err
	}
	return result(r.Result, r.ExceptionDetails, out)
}

// result reads what a script gave.
func result(o *runtime.RemoteObject, failed *runtime.ExceptionDetails, out any) error {
	if failed != nil {
		text := failed.Text
		if failed.Exception != nil && failed.Exception.Description != "" {
			text, _, _ = strings.Cut(failed.Exception.Description, "\n")
		}
		return errors.New(strings.TrimPrefix(excerpt(text, 300), "Error: "))
	}
	if out == nil || o == nil || len(o.Value) == 0 {
		return nil
	}
	return jsonv2.Unmarshal(o.Value, out, jsonv2.AllowInvalidUTF8(true))
}

// excerpt is the beginning of a text that a page wrote.
func excerpt(s string, most int) string { return clip.Runes(strings.ToValidUTF8(s, "\uFFFD"), most) }

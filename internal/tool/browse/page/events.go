package page

import (
	"context"
	"slices"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"deckhand/internal/tool/browse/devtools"
)

// event takes what the browser tells. It must not wait for anything.
func (b *Browser) event(e devtools.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.Session == "" {
		b.browserEvent(e)
	} else if t := b.find(func(t *Tab) bool { return t.session == e.Session }); t != nil {
		t.event(e)
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// into decodes an event; one that cannot be read is as good as none.
func into[T any](e devtools.Event) (v T, ok bool) {
	ok = e.Into(&v) == nil
	return v, ok
}

func (b *Browser) browserEvent(e devtools.Event) {
	switch e.Method {
	case target.AttachedToTarget.Method:
		if v, ok := into[target.EventAttachedToTarget](e); ok && v.TargetInfo != nil {
			b.attached(v)
		}
	case target.DetachedFromTarget.Method:
		if v, ok := into[target.EventDetachedFromTarget](e); ok {
			b.detached(string(v.SessionID))
		}
	case target.TargetInfoChanged.Method:
		if v, ok := into[target.EventTargetInfoChanged](e); ok && v.TargetInfo != nil {
			if t := b.find(func(t *Tab) bool { return t.id == v.TargetInfo.TargetID }); t != nil {
				t.describe(v.TargetInfo)
			}
		}
	case browser.DownloadWillBegin.Method:
		if v, ok := into[browser.EventDownloadWillBegin](e); ok && len(b.downloads) < maxDownloads {
			b.downloads[v.GUID] = &download{name: v.SuggestedFilename}
		}
	case browser.DownloadProgress.Method:
		if v, ok := into[browser.EventDownloadProgress](e); ok {
			b.downloaded(v)
		}
	}
}

// attached takes in a tab. One that a page opened is looked at from now on, as
// it would be in front of a person.
func (b *Browser) attached(e target.EventAttachedToTarget) {
	info := e.TargetInfo
	t := &Tab{browser: b, id: info.TargetID, session: string(e.SessionID)}
	t.describe(info)
	if len(b.tabs) >= maxTabs {
		b.note("A page opened a tab beyond the %d that may be open; it was closed.", maxTabs)
		b.later(func(ctx context.Context) {
			_, _ = call(ctx, t, runtime.RunIfWaitingForDebugger, cdp.Empty{})
			_, _ = devtools.Call(ctx, b.conn, "", target.CloseTarget, target.CloseTargetParams{TargetID: t.id})
		})
		return
	}
	if info.OpenerID != "" && e.WaitingForDebugger {
		b.note("The page opened a new tab, which is the active one now.")
	}
	b.tabs = append(b.tabs, t)
	b.active = t
	b.later(t.prepare)
}

// describe takes over what the browser says of a tab.
func (t *Tab) describe(info *target.Info) {
	t.url, t.title = excerpt(info.URL, 4000), excerpt(info.Title, 300)
}

// detached forgets a tab. The one before it is looked at.
func (b *Browser) detached(session string) {
	i := slices.IndexFunc(b.tabs, func(t *Tab) bool { return t.session == session })
	if i < 0 {
		return
	}
	t := b.tabs[i]
	t.gone = true
	b.conn.Abandon(session)
	b.tabs = slices.Delete(b.tabs, i, i+1)
	if b.active == t {
		b.active = nil
		if len(b.tabs) > 0 {
			b.active = b.tabs[max(i-1, 0)]
		}
	}
}

// prepare makes a tab tell of itself, gives it its size and lets it run. A tab
// that was just opened answers nothing before that.
func (t *Tab) prepare(ctx context.Context) {
	conn, size := t.browser.conn, t.browser.options
	_ = devtools.Tell(conn, t.session, page.Enable, page.EnableParams{})
	_ = devtools.Tell(conn, t.session, inspector.Enable, cdp.Empty{})
	_ = devtools.Tell(conn, t.session, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: int64(size.Width), Height: int64(size.Height), DeviceScaleFactor: 1,
	})
	_, _ = call(ctx, t, runtime.RunIfWaitingForDebugger, cdp.Empty{})
	_, _ = call(ctx, t, page.Enable, page.EnableParams{}) // answered after the first
	b := t.browser
	b.mu.Lock()
	defer b.mu.Unlock()
	t.ready = true
	close(b.changed)
	b.changed = make(chan struct{})
}

// event is called with the lock held.
func (t *Tab) event(e devtools.Event) {
	switch e.Method {
	case page.FrameStartedLoading.Method:
		if v, ok := into[page.EventFrameStartedLoading](e); ok && t.main(v.FrameID) {
			t.loading = true
		}
	case page.FrameRequestedNavigation.Method:
		if v, ok := into[page.EventFrameRequestedNavigation](e); ok && t.main(v.FrameID) && v.Disposition == page.ClientNavigationDispositionCurrentTab {
			t.loading = true
		}
	case page.FrameStoppedLoading.Method:
		if v, ok := into[page.EventFrameStoppedLoading](e); ok && t.main(v.FrameID) {
			t.loading = false
		}
	case page.FrameNavigated.Method:
		if v, ok := into[page.EventFrameNavigated](e); ok && v.Frame != nil && v.Frame.ParentID == "" {
			t.moves++
		}
	case page.NavigatedWithinDocument.Method:
		if v, ok := into[page.EventNavigatedWithinDocument](e); ok && t.main(v.FrameID) {
			t.moves++
			t.loading = false
		}
	case page.JavascriptDialogOpening.Method:
		if v, ok := into[page.EventJavascriptDialogOpening](e); ok {
			t.dialog(v)
		}
	case input.DragIntercepted.Method:
		if v, ok := into[input.EventDragIntercepted](e); ok {
			t.drag = v.Data
		}
	case inspector.TargetCrashed.Method:
		t.crashed, t.loading = true, false
		t.browser.note("The page %s crashed.", t.url)
		t.browser.conn.Abandon(t.session)
	}
}

// main says whether a frame is the whole page. The browser calls both by the same name.
func (t *Tab) main(frame cdp.FrameID) bool { return string(frame) == string(t.id) }

// dialog answers a page that asks: it cannot go on before. Leaving a page is
// never refused, or the page could keep the browser.
func (t *Tab) dialog(e page.EventJavascriptDialogOpening) {
	b := t.browser
	answer := b.answer
	if e.Type == page.DialogTypeAlert || e.Type == page.DialogTypeBeforeunload {
		answer.Accept = true
	}
	did := "dismissed"
	if answer.Accept {
		did = "accepted"
	}
	b.note("The page showed a dialog (%s): %q. It was %s.", e.Type, excerpt(e.Message, 500), did)
	text := ""
	if e.Type == page.DialogTypePrompt && answer.Accept {
		text = answer.Text
	}
	b.later(func(ctx context.Context) {
		_, _ = call(ctx, t, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: answer.Accept, PromptText: text})
	})
}

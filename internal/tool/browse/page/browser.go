// Package page drives the tabs of a browser: what is on them, and what a person
// could do with mouse and keyboard.
//
// An element is called by its bid, the number that the browser itself gives to
// it. It stays the same for as long as the element exists, also for a server
// that connects later.
package page

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"deckhand/internal/tool/browse/devtools"
)

// maxTabs is how many tabs may be open. A page that opens more has them closed.
const maxTabs = 20

// What a page, or a program in the sandbox that poses as a browser, can make us
// keep is bounded.
const (
	maxNotes     = 30   // things that are told after a call
	maxDownloads = 100  // files that are being fetched
	maxQueue     = 1000 // events that ask for something
)

// Options say how to reach a browser and how to set it up.
type Options struct {
	// Address is where it listens, Dial what leads there.
	Address string
	Dial    func(context.Context) (net.Conn, error)
	// Downloads is the folder for files that pages hand out.
	Downloads     string
	Width, Height int
}

// Browser is a connection to a browser with its tabs. What a person would do is
// done by one goroutine at a time.
type Browser struct {
	options Options
	conn    *devtools.Conn
	cancel  context.CancelFunc
	worker  sync.WaitGroup
	wake    chan struct{}

	mu        sync.Mutex
	tabs      []*Tab // in the order in which they were opened
	active    *Tab
	queue     []func(context.Context) // what the events ask for
	downloads map[string]*download
	notes     []string
	answer    Answer
	changed   chan struct{} // closed, and replaced, at every event
}

// Answer is what is said to a page that asks in a dialog.
type Answer struct {
	Accept bool
	Text   string
}

// download is a file that is being fetched.
type download struct {
	name string
	done bool
}

// Connect connects to a browser and to all its tabs.
func Connect(ctx context.Context, o Options) (*Browser, error) {
	b := &Browser{options: o, wake: make(chan struct{}, 1), downloads: map[string]*download{}, changed: make(chan struct{})}
	var err error
	b.mu.Lock() // events wait until there is something to answer them with
	b.conn, err = devtools.Dial(ctx, o.Address, o.Dial, b.event)
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var working context.Context
	working, b.cancel = context.WithCancel(context.Background())
	b.worker.Go(func() { b.work(working) })
	if err := b.prepare(ctx); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// prepare makes the browser tell of its tabs, and waits until all that are
// there are known.
func (b *Browser) prepare(ctx context.Context) error {
	yes := true
	pages := target.Filter{{Type: "page"}, {Exclude: true}}
	if _, err := devtools.Call(ctx, b.conn, "", browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: b.options.Downloads, EventsEnabled: &yes,
	}); err != nil {
		return err
	}
	if _, err := devtools.Call(ctx, b.conn, "", target.SetDiscoverTargets, target.SetDiscoverTargetsParams{Discover: true, Filter: pages}); err != nil {
		return err
	}
	if _, err := devtools.Call(ctx, b.conn, "", target.SetAutoAttach, target.SetAutoAttachParams{
		AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: &yes, Filter: pages,
	}); err != nil {
		return err
	}
	_, err := b.Active(ctx)
	return err
}

// Close lets go of the browser, which runs on.
func (b *Browser) Close() {
	b.cancel()
	b.conn.Close()
	b.worker.Wait()
}

// Done is closed when the browser has ended, or was let go of.
func (b *Browser) Done() <-chan struct{} { return b.conn.Done() }

// work handles the events that need an action, because the goroutine that reads events must not
// block.
func (b *Browser) work(ctx context.Context) {
	for {
		select {
		case <-b.wake:
		case <-ctx.Done():
			return
		case <-b.conn.Done():
			return
		}
		for {
			b.mu.Lock()
			if len(b.queue) == 0 {
				b.mu.Unlock()
				break
			}
			do := b.queue[0]
			b.queue = b.queue[1:]
			b.mu.Unlock()
			bounded, cancel := context.WithTimeout(ctx, workTimeout)
			do(bounded)
			cancel()
		}
	}
}

// workTimeout is how long a browser may take for what should be instant.
const workTimeout = 10 * time.Second

// later is called with the lock held.
func (b *Browser) later(do func(context.Context)) {
	if len(b.queue) >= maxQueue {
		return
	}
	b.queue = append(b.queue, do)
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// note is called with the lock held.
func (b *Browser) note(format string, a ...any) {
	if len(b.notes) < maxNotes {
		b.notes = append(b.notes, fmt.Sprintf(format, a...))
	}
}

// Notes are the things that happened since it was last asked.
func (b *Browser) Notes() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.notes
	b.notes = nil
	return n
}

// SetAnswer says what pages are answered from now on.
func (b *Browser) SetAnswer(a Answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = a
}

// until waits until something holds of what the lock protects.
func (b *Browser) until(ctx context.Context, holds func() bool) error {
	for {
		b.mu.Lock()
		ok, changed := holds(), b.changed
		b.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-b.conn.Done():
			return devtools.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Active is the tab that is looked at. A browser without tabs gets one.
func (b *Browser) Active(ctx context.Context) (*Tab, error) {
	b.mu.Lock()
	t := b.active
	b.mu.Unlock()
	if t == nil {
		return b.NewTab(ctx)
	}
	return t, b.until(ctx, func() bool { return t.ready || t.gone })
}

// NewTab opens an empty tab and looks at it.
func (b *Browser) NewTab(ctx context.Context) (*Tab, error) {
	r, err := devtools.Call(ctx, b.conn, "", target.CreateTarget, target.CreateTargetParams{URL: "about:blank"})
	if err != nil {
		return nil, err
	}
	var t *Tab
	err = b.until(ctx, func() bool {
		t = b.find(func(t *Tab) bool { return t.id == r.TargetID })
		return t != nil && (t.ready || t.gone)
	})
	return t, err
}

// find is called with the lock held.
func (b *Browser) find(is func(*Tab) bool) *Tab {
	if i := slices.IndexFunc(b.tabs, is); i >= 0 {
		return b.tabs[i]
	}
	return nil
}

// ErrNoTab says that there is no tab of that number.
var ErrNoTab = errors.New("there is no such tab")

// Focus looks at another tab.
func (b *Browser) Focus(ctx context.Context, index int) error {
	b.mu.Lock()
	if index < 0 || index >= len(b.tabs) {
		b.mu.Unlock()
		return ErrNoTab
	}
	t := b.tabs[index]
	b.active = t
	b.mu.Unlock()
	_, err := devtools.Call(ctx, b.conn, "", target.ActivateTarget, target.ActivateTargetParams{TargetID: t.id})
	return err
}

// FocusURL looks at the newest tab with this address, if there is one.
func (b *Browser) FocusURL(url string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range slices.Backward(b.tabs) {
		if t.url == url {
			b.active = t
			return
		}
	}
}

// CloseTab closes the tab that is looked at.
func (b *Browser) CloseTab(ctx context.Context) error {
	t, err := b.Active(ctx)
	if err != nil {
		return err
	}
	return b.shut(ctx, t)
}

// shut closes a tab and waits until it has gone.
func (b *Browser) shut(ctx context.Context, t *Tab) error {
	if _, err := devtools.Call(ctx, b.conn, "", target.CloseTarget, target.CloseTargetParams{TargetID: t.id}); err != nil {
		return err
	}
	return b.until(ctx, func() bool { return t.gone })
}

// TabInfo is what can be said of a tab without asking it.
type TabInfo struct{ URL, Title string }

// Tabs lists the tabs and says which one is looked at.
func (b *Browser) Tabs(ctx context.Context) (list []TabInfo, active int) {
	// The browser does not report everything about background tabs by itself.
	r, _ := devtools.Call(ctx, b.conn, "", target.GetTargets, target.GetTargetsParams{})
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, t := range b.tabs {
		for _, info := range r.TargetInfos {
			if info != nil && info.TargetID == t.id {
				t.describe(info)
			}
		}
		list = append(list, TabInfo{t.url, t.title})
		if t == b.active {
			active = i
		}
	}
	return list, active
}

// Fetched waits until no file is being fetched any more.
func (b *Browser) Fetched(ctx context.Context) error {
	return b.until(ctx, func() bool {
		for _, d := range b.downloads {
			if !d.done {
				return false
			}
		}
		return true
	})
}

// downloaded is called with the lock held.
func (b *Browser) downloaded(e browser.EventDownloadProgress) {
	d := b.downloads[e.GUID]
	if d == nil || d.done {
		return
	}
	name := d.name
	if e.FilePath != "" { // a name that was taken gets a number
		name = path.Base(e.FilePath)
	}
	where := path.Join(b.options.Downloads, name)
	switch e.State {
	case browser.DownloadProgressStateCompleted:
		b.note("The file %s was downloaded (%.0f bytes).", where, e.ReceivedBytes)
	case browser.DownloadProgressStateCanceled:
		b.note("The download of %s was cancelled.", d.name)
	default:
		return
	}
	d.done = true
	delete(b.downloads, e.GUID)
}

// call asks a page to do something.
func call[P, R any](ctx context.Context, t *Tab, command cdp.Command[P, R], params P) (R, error) {
	return devtools.Call(ctx, t.browser.conn, t.session, command, params)
}

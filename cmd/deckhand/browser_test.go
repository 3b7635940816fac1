package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"deckhand/internal/sandbox/docker/dockertest"
	"deckhand/internal/tool/browse/devtools"
)

// tab is a page in a real Chromium. Pages tell what they have seen by calling
// report, which the browser gives them.
type tab struct {
	t       *testing.T
	conn    *devtools.Conn
	session string
	reports chan string
	loads   chan struct{}

	mu     sync.Mutex
	errors []string        // what the console shows in red
	asked  map[string]bool // origins, and the schemes of what has none
}

// findChromium is the browser that is installed here.
func findChromium(t *testing.T) (program string) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: a real browser is left out of the short round")
	}
	// The one without windows comes first: it takes a quarter of the processor time to start.
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	dockertest.Missing(t, "no Chromium is installed; on Debian: apt-get install chromium")
	return ""
}

// browserTemp makes a folder for a browser's profile and its temporary files, which it
// leaves behind when it is killed. The name is short: sockets are made in it.
func browserTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "chromium")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		tick, end := time.NewTicker(10*time.Millisecond), time.After(time.Minute)
		defer tick.Stop()
		for os.RemoveAll(dir) != nil { // a process of it that was just killed may still write
			select {
			case <-tick.C:
			case <-end:
				t.Errorf("%s cannot be removed", dir)
				return
			}
		}
	})
	return dir
}

// startChromium starts a browser with an empty profile, and ends it with the test.
func startChromium(t *testing.T) (address string) {
	t.Helper()
	program := findChromium(t)
	dir := browserTemp(t)
	cmd := exec.Command(program, "--headless=new", "--remote-debugging-port=0", "--user-data-dir="+dir, "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-breakpad", "--ignore-certificate-errors", "about:blank")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	words, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found, gone := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(gone)
		for lines := bufio.NewScanner(words); lines.Scan(); {
			if _, at, ok := strings.Cut(lines.Text(), "DevTools listening on "); ok {
				found <- at
			}
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it and its children, which are in a group of their own
		<-gone
		_ = cmd.Wait()
	})
	select {
	case address = <-found:
	case <-gone:
		t.Fatal("Chromium ended before it listened")
	}
	return address
}

// newTab opens a page that has a report function.
func newTab(t *testing.T, address string) *tab {
	t.Helper()
	b := &tab{t: t, reports: make(chan string, 100), loads: make(chan struct{}, 100), asked: map[string]bool{}}
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	b.conn, err = devtools.Dial(t.Context(), address, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", at.Host)
	}, b.event)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = devtools.Tell(b.conn, "", browser.Close, cdp.Empty{})
		b.conn.Close()
	})
	made := do(b, target.CreateTarget, target.CreateTargetParams{URL: "about:blank"})
	yes := true
	b.session = string(do(b, target.AttachToTarget, target.AttachToTargetParams{TargetID: made.TargetID, Flatten: &yes}).SessionID)
	do(b, page.Enable, page.EnableParams{})
	do(b, runtime.Enable, cdp.Empty{})
	do(b, log.Enable, cdp.Empty{})
	do(b, network.Enable, network.EnableParams{})
	do(b, runtime.AddBinding, runtime.AddBindingParams{Name: "report"})
	return b
}

func do[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Minute)
	defer cancel()
	r, err := devtools.Call(ctx, b.conn, b.session, command, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// event notes what the page does.
func (b *tab) event(e devtools.Event) {
	var v struct {
		Payload string `json:"payload"`
		URL     string `json:"url"`
		Type    string `json:"type"`
		Request struct {
			URL string `json:"url"`
		} `json:"request"`
		Entry struct {
			Level string `json:"level"`
			Text  string `json:"text"`
			URL   string `json:"url"`
		} `json:"entry"`
		Failed struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	_ = e.Into(&v) // where a field is something else, it is not looked at
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e.Method {
	case "Runtime.bindingCalled":
		b.reports <- v.Payload
	case "Page.loadEventFired":
		b.loads <- struct{}{}
	case "Runtime.exceptionThrown":
		b.errors = append(b.errors, v.Failed.Text+" "+v.Failed.Exception.Description)
	case "Runtime.consoleAPICalled":
		if v.Type == "error" || v.Type == "assert" {
			b.errors = append(b.errors, "console."+v.Type)
		}
	case "Log.entryAdded":
		if v.Entry.Level == "error" {
			b.errors = append(b.errors, v.Entry.Text+" "+v.Entry.URL)
		}
	case "Network.requestWillBeSent", "Network.webSocketCreated":
		if u, err := url.Parse(v.Request.URL + v.URL); err == nil {
			b.asked[u.Scheme+"://"+u.Host] = true
		}
	}
}

// open goes to an address.
func (b *tab) open(address string) {
	b.t.Helper()
	if r := do(b, page.Navigate, page.NavigateParams{URL: address}); r.ErrorText != "" {
		b.t.Fatalf("%s: %s", address, r.ErrorText)
	}
}

// arrive waits until a page is loaded of which the script gives want. Pages that
// go on by themselves may be left before they are loaded.
func (b *tab) arrive(script, want string) {
	b.t.Helper()
	got := ""
	for patience := time.After(5 * time.Minute); ; {
		select {
		case <-b.loads:
		case <-patience:
			b.t.Fatalf("%s is %q, want %q; errors: %q", script, got, want, b.wrong())
		}
		if got, _ = try[string](b, script); got == want {
			return
		}
	}
}

// hear waits for what the page says next, and reads it.
func (b *tab) hear(what string, into any) {
	b.t.Helper()
	select {
	case text := <-b.reports:
		var said struct{ What string }
		if err := json.Unmarshal([]byte(text), &said); err != nil || said.What != what {
			b.t.Fatalf("it says %s, want %s; errors: %q", text, what, b.wrong())
		}
		if into != nil {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				b.t.Fatal(err)
			}
		}
	case <-time.After(5 * time.Minute):
		b.t.Fatalf("it says nothing, want %s; errors: %q", what, b.wrong())
	}
}

// evaluate runs a script in the page and gives its value.
func evaluate[T any](b *tab, script string) T {
	b.t.Helper()
	v, err := try[T](b, script)
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return v
}

// try is evaluate for a page that may be going away.
func try[T any](b *tab, script string) (v T, err error) {
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Minute)
	defer cancel()
	yes := true
	r, err := devtools.Call(ctx, b.conn, b.session, runtime.Evaluate, runtime.EvaluateParams{Expression: script, ReturnByValue: &yes, AwaitPromise: &yes})
	switch {
	case err != nil:
	case r.ExceptionDetails != nil:
		err = errors.New(r.ExceptionDetails.Text)
	case r.Result != nil && len(r.Result.Value) > 0:
		err = json.Unmarshal(r.Result.Value, &v)
	}
	return v, err
}

// wrong is what the console has shown in red.
func (b *tab) wrong() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.errors...)
}

// origins are where the page has asked for something.
func (b *tab) origins() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for o := range b.asked {
		out = append(out, o)
	}
	return out
}

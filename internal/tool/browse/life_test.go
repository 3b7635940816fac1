package browse_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/egress"
	"deckhand/internal/sandbox/egress/ledgertest"
	"deckhand/internal/tool/browse"
)

// lifeTests are about browsers and connections that end. They share a session.
var lifeTests = []struct {
	name string
	run  func(t *testing.T, r *rig)
}{
	{"Restart", restart},
	{"Idle", idle},
	{"Cancelled", cancelled},
	{"Crash", crash},
	{"Killed", killed},
	{"Again", again},
}

func missing(t *testing.T, r *rig) {
	if err := r.box.SetEnv(t.Context(), map[string]string{"PATH": "/nowhere"}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.box.SetEnv(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}()
	res, _ := r.run(t, "goto('http://127.0.0.1/')")
	if !res.Failed {
		t.Error("there is a browser")
	}
	has(t, res.Text, "no Chromium is installed", "apt-get install chromium")
}

// What is not in the sandbox is reached through its proxy, and what is there is not.
func proxy(t *testing.T, r *rig, w *way) {
	w.set(func(_ context.Context, _, _ string, c net.Conn) {
		defer c.Close()
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<title>Outside</title><p>asked for %s</p>", req.RequestURI)
	})
	has(t, r.ok(t, "goto('http://outside.test/page')"), "[Title: Outside]", "asked for http://outside.test/page")
	has(t, r.ok(t, "goto('SITE/')"), "[Title: Home]")
}

// A policy that allows nothing holds for the browser, and the model is told.
// The host is a new one: a browser connects ahead of need, and
// what it has kept open for a host still leads to the way out of that time.
func blocked(t *testing.T, r *rig, w *way) {
	p := egress.New(egress.Config{
		Policy: func(context.Context, string) (egress.Policy, error) { return egress.Policy{Mode: egress.Off}, nil },
		Ledger: &ledgertest.Memory{},
	})
	w.set(p.Serve)
	defer p.Close()
	res, _ := r.run(t, "goto('https://barred.test/')")
	if !res.Failed {
		t.Error("it was opened")
	}
	has(t, res.Text, "[Error: goto('https://barred.test/')", "network policy does not allow")
	has(t, r.ok(t, "goto('http://barred.test/')"), "[HTTP status: 403]")
	has(t, r.ok(t, "goto('SITE/')"), "[Title: Home]")
}

// A server that was restarted finds the page as it was.
func restart(t *testing.T, r *rig) {
	text := r.ok(t, "goto('SITE/form.html')")
	name := bid(t, text, "textbox 'Name'")
	res, _ := r.run(t, "fill('"+name+"', 'kept')\nnew_tab()\ntab_focus(0)")
	next := &rig{tool: browse.New(), box: r.box, session: r.session, site: r.site}
	defer next.tool.Close()
	call := next.call("press('" + name + "', '!')")
	call.Previous = res.Details
	res, d := next.do(t, call)
	has(t, res.Text, "[Title: Form]", "value='kept!'")
	if strings.Contains(res.Text, "started again") || d.URL != r.site+"/form.html" || len(d.OpenPagesURLs) != 2 {
		t.Errorf("%s of %q:\n%s", d.URL, d.OpenPagesURLs, res.Text)
	}
	r.ok(t, "tab_close()")
}

// An unused connection is closed, and made again for the next call.
func idle(t *testing.T, r *rig) {
	next := &rig{tool: browse.New(), box: r.box, session: r.session, site: r.site}
	defer next.tool.Close()
	next.tool.SetIdle(time.Millisecond)
	next.ok(t, "goto('SITE/')")
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for next.tool.Connected(next.session) {
		<-look.C
	}
	has(t, next.ok(t, "noop(0)"), "[Title: Home]")
}

// A call that was given up leaves the browser as it is.
func cancelled(t *testing.T, r *rig) {
	r.ok(t, "goto('SITE/')")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	call := r.call("goto('" + r.site + "/never')")
	go func() {
		_, err := r.tool.Run(ctx, r.use, call)
		ended <- err
	}()
	r.sh(t, "while ! grep -q /never .site/asked; do sleep 0.02; done")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	has(t, r.ok(t, "goto('SITE/form.html')"), "[Title: Form]")
}

// A page that crashes is told of, and replaced.
func crash(t *testing.T, r *rig) {
	r.ok(t, "goto('SITE/')")
	r.sh(t, "pkill -9 -f type=renderer")
	res, _ := r.run(t, "get_text()")
	if !res.Failed {
		t.Error("a page that is gone was read")
	}
	has(t, res.Text, "The page "+r.site+"/ crashed.", "empty tab", "[Current URL: about:blank]")
	has(t, r.ok(t, "goto('SITE/')"), "[Title: Home]")
}

// A browser that ended is told of, and started again.
func killed(t *testing.T, r *rig) {
	r.ok(t, "goto('SITE/')")
	r.sh(t, "pkill -9 chromium; while pgrep chromium; do sleep 0.02; done")
	text := r.ok(t, "goto('SITE/form.html')")
	has(t, text, "had ended and was started again", "[Title: Form]")
	// The same in the middle of a call.
	ended := make(chan string, 1)
	call := r.call("goto('" + r.site + "/never?again')")
	go func() {
		res, err := r.tool.Run(t.Context(), r.use, call)
		if err != nil || !res.Failed {
			ended <- "it did not fail"
			return
		}
		ended <- res.Text
	}()
	r.sh(t, "while ! grep -q again .site/asked; do sleep 0.02; done; pkill -9 chromium")
	has(t, <-ended, "the browser ended", "started again", "about:blank")
}

// A call that may have been made before is not made again.
func again(t *testing.T, r *rig) {
	r.ok(t, "goto('SITE/')")
	call := r.call("goto('" + r.site + "/form.html')")
	call.Again = true
	res, d := r.do(t, call)
	if !res.Unknown || d.URL != r.site+"/" || len(res.Images) != 1 {
		t.Errorf("%v %s", res.Unknown, d.URL)
	}
	has(t, res.Text, "not known", "[Title: Home]")
	// A sandbox that was not up cannot have begun anything.
	call.Up = false
	if res, _ := r.do(t, call); res.Unknown || !strings.Contains(res.Text, "[Title: Form]") {
		t.Errorf("%+v", res)
	}
	r.sh(t, "pkill -9 chromium; while pgrep chromium; do sleep 0.02; done")
	call.Up = true
	if res, _ := r.do(t, call); !res.Unknown || !strings.Contains(res.Text, "no browser now") {
		t.Errorf("%+v", res)
	}
}

// Two sessions whose sandboxes have no walls between them have a browser each,
// and nothing is left of either when its sandbox has gone.
func apart(t *testing.T, d sandbox.Driver, tl *browse.Tool) {
	mine := strconv.Itoa(os.Getpid()) // others may test on this machine, too
	for _, session := range []string{"one-" + mine, "two-" + mine} {
		t.Cleanup(func() { os.RemoveAll((&rig{session: session}).folder()) }) // when its browser has ended
	}
	a, b := open(t, d, tl, "one-"+mine), open(t, d, tl, "two-"+mine)
	a.serve(t)
	b.site = a.site
	a.ok(t, "goto('SITE/')")
	has(t, b.ok(t, "goto('SITE/form.html')"), "[Title: Form]")
	has(t, a.ok(t, "noop(0)"), "[Title: Home]")
	if _, details := a.run(t, "screenshot('here.png')"); details.ScreenshotPath == nil || !strings.HasPrefix(*details.ScreenshotPath, a.sh(t, "pwd")) {
		t.Errorf("%+v", details.ScreenshotPath)
	}
	pid := a.sh(t, "cat "+a.folder()+"/pid")
	if err := d.Destroy(t.Context(), a.handle); err != nil {
		t.Fatal(err)
	}
	// What has ended and was not waited for yet has no arguments any more.
	if b.sh(t, "grep -aqsF "+a.folder()+" /proc/"+pid+"/cmdline && echo alive") == "alive" {
		t.Error("the first one's browser still runs")
	}
	has(t, b.ok(t, "noop(0)"), "[Title: Form]")
	// The connection of the first went with its sandbox: that is not the model's business.
	if _, err := tl.Run(t.Context(), a.use, a.call("noop(0)")); err == nil {
		t.Error("a sandbox that is gone was used")
	}
}

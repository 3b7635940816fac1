package main

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// frontEnd puts a front end together as a build would, with the real Socket.IO client.
func frontEnd(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/frontend")); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(filepath.Join(socketModules(t), "socket.io-client", "dist", "socket.io.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "assets", "socket.io.min.js"), script, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestLegacyUIFlag(t *testing.T) {
	for _, dir := range []string{t.TempDir(), "/dev/null", filepath.Join(t.TempDir(), "nothing")} {
		data := filepath.Join(t.TempDir(), "data")
		code, _, errs := command(t, "serve", "--addr", "127.0.0.1:0", "--data-dir", data, "--legacy-ui", dir)
		if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a server that cannot start has made its data dir: %v", err)
		}
		if code == 0 || !strings.Contains(errs, "--legacy-ui") || !strings.Contains(errs, "index.html") {
			t.Errorf("%s: %d %s", dir, code, errs)
		}
	}
	t.Setenv("DECKHAND_LEGACY_UI", "testdata/frontend")
	b := serve(t, "")
	if status, text, _ := b.raw("GET", "/assets/app.js", ""); status != 200 || !strings.Contains(text, "report") {
		t.Errorf("by the environment: %d %s", status, text)
	}
}

// A page that calls as the legacy front end does, in a real browser: it is opened
// by the login link, works with what it is given, and reaches nobody but us.
func TestLegacyUIInABrowser(t *testing.T) {
	t.Parallel()
	address := startChromium(t)
	var strangers atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strangers.Add(1) }))
	defer other.Close()
	b := serve(t, "", "--legacy-ui", frontEnd(t))
	b.demo("scripted/demo")
	tab := newTab(t, address)

	tab.open(b.link)
	var talked struct {
		ID, Key, Booted, Colour string
		Shown                   int
	}
	tab.hear("talked", &talked)
	defer (&person{box: b}).drop(talked.ID)
	if talked.Shown < 5 || talked.Booted != "by a script in the page" || talked.Colour != "rgb(1, 2, 3)" || !strings.HasPrefix(talked.Key, "dhp_") {
		t.Errorf("%+v", talked)
	}
	if at := evaluate[string](tab, "location.href"); at != b.base+"/conversations/"+talked.ID {
		t.Errorf("it is at %s", at)
	}
	if cookie := evaluate[string](tab, "document.cookie"); cookie != "" {
		t.Errorf("scripts can read the cookie: %s", cookie)
	}

	tab.open(b.base + "/conversations/" + talked.ID) // with the cookie alone, by polling and an upgrade
	var followed struct{ Shown int }
	tab.hear("followed", &followed)
	if followed.Shown < 5 { // of the states only the last is told again
		t.Errorf("%d events, there were %d", followed.Shown, talked.Shown)
	}
	host := strings.TrimPrefix(b.base, "http://")
	if wrong, asked := tab.wrong(), tab.origins(); len(wrong) > 0 || len(asked) != 2 || len(strings.Join(asked, " ")) != len("http:// ws://")+2*len(host) {
		t.Errorf("errors %q; it asked %q", wrong, asked)
	}

	// Whatever an agent writes into a conversation, nothing of it gets out.
	tries := `Promise.allSettled([fetch("` + other.URL + `", {mode: "no-cors"}), new Promise((ok, no) => { const i = new Image(); i.onload = ok; i.onerror = no; i.src = "` + other.URL + `/x.png"; }),
		new Promise((ok, no) => { const s = document.createElement("script"); s.onload = ok; s.onerror = no; s.src = "` + other.URL + `/x.js"; document.head.append(s); }),
		new Promise((ok, no) => { const w = new WebSocket("ws` + strings.TrimPrefix(other.URL, "http") + `"); w.onopen = ok; w.onerror = no; }),
		new Promise((ok, no) => { window.ran = no; const s = document.createElement("script"); s.textContent = "window.ran = () => {}; report('ran')"; document.head.append(s); window.ran(); })
	]).then((all) => all.map((one) => one.status).join(" "))`
	if got := evaluate[string](tab, tries); got != "rejected rejected rejected rejected rejected" || strangers.Load() != 0 {
		t.Errorf("a page could reach others: %s, %d requests", got, strangers.Load())
	}

	if status := evaluate[int](tab, `fetch("/api/logout", { method: "POST" }).then((r) => r.status)`); status != 200 {
		t.Errorf("logout: %d", status)
	}
	tab.hear("disconnected", nil)
	if status, _, _ := b.raw("GET", "/api/conversations/"+talked.ID, "", "X-Session-API-Key", talked.Key); status != 401 {
		t.Errorf("the page's key after the logout: %d", status)
	}
	tab.open(b.base + "/conversations/" + talked.ID)
	tab.arrive("document.title", "Log in · Deckhand")
}

// Deckhand's own page, in a real browser behind a real proxy that takes its path
// away: the login link, the links, and who comes by a link from elsewhere.
func TestPageBelowAPathInABrowser(t *testing.T) {
	t.Parallel()
	address := startChromium(t)
	needPage(t)
	front, behind := freeAddress(t), freeAddress(t)
	base := atLocalhost(front) + "/deckhand"
	b := serve(t, "", "--addr", behind, "--public-url", base)
	b.client.HTTP = trusting(t, startNginx(t, front, behind, proxyBlocks(t, "nginx", 6)[4], ""))
	b.demo("scripted/demo")
	id := b.create("hello")
	b.follow(id, 0, agentIs("awaiting_user_input"))
	tab := newTab(t, address)
	tab.open(b.link)
	tab.see("location.href", base+"/") // it went on by itself
	tab.see(`document.querySelector("section a[href$='/conversations/`+id+`']") ? "listed" : ""`, "listed")
	evaluate[any](tab, `document.querySelector("section a[href$='/conversations/`+id+`']").click()`)
	tab.see("location.href", base+"/conversations/"+id)
	tab.see(`document.querySelector("[role=feed]")?.textContent.includes("hello") ? "read" : ""`, "read")
	if wrong := tab.wrong(); len(wrong) > 0 {
		t.Errorf("errors: %q", wrong)
	}

	for path, title := range map[string]string{"/conversations/" + id: "hello", "/docs": "API"} {
		elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(`<title>Elsewhere</title><a href="` + base + path + `">Look</a>`))
		}))
		defer elsewhere.Close()
		tab.open(elsewhere.URL) // another site
		tab.see("document.title", "Elsewhere")
		evaluate[any](tab, `document.querySelector("a").click()`)
		tab.see(`location.href + (document.title.includes("`+title+`") ? "" : " not yet")`, base+path)
	}
	if n := len(tab.wrong()); n != 1 {
		t.Errorf("errors, of which the status of the page in place of the API's is one: %q", tab.wrong())
	}
	code, out, errs := b.beside("open", id[:8])
	if code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	if status := evaluate[int](tab, `fetch("/deckhand/api/logout", { method: "POST" }).then((r) => r.status)`); status != 200 {
		t.Errorf("logout: %d", status)
	}
	for range 2 { // the second time the page is open, the ticket used up, and the browser logged in
		tab.open(strings.TrimSpace(out))
		tab.see(`location.href + (document.querySelector("[role=feed]") ? "" : " not yet")`, base+"/conversations/"+id)
	}
}

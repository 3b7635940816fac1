package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/npmtest"
	"deckhand/internal/sandbox/docker/dockertest"
)

// socketModules is the official Socket.IO client.
func socketModules(t *testing.T) string {
	t.Helper()
	return npmtest.Install(t, "socket.io-client-4.8.1", "socket.io-client@4.8.1")
}

// proxyBlocks are the examples in the documentation, in their order: what is run
// here is what people copy.
func proxyBlocks(t *testing.T, lang string, want int) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/reverse-proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile("(?s)```"+lang+"\n(.*?)```").FindAllSubmatch(page, -1) {
		out = append(out, string(m[1]))
	}
	if len(out) != want {
		t.Fatalf("the page has %d examples in %s", len(out), lang)
	}
	return out
}

// freeAddress is one that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// atLocalhost is the URL of a proxy at the address.
func atLocalhost(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return "https://localhost:" + port
}

// trusting returns a client that trusts the certificate in a file, and prefers HTTP/2 as browsers do.
func trusting(t *testing.T, certificate string) *http.Client {
	t.Helper()
	text, err := os.ReadFile(certificate)
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(text) {
		t.Fatalf("%s: %v", certificate, err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// selfSigned writes a certificate for localhost and its key.
func selfSigned(t *testing.T, certificate, key string) {
	t.Helper()
	cmd := exec.Command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// startNginx runs nginx at the address with one example, before the server at behind, and returns the file with its certificate.
func startNginx(t *testing.T, address, behind, example, key string) (certificate string) {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		if _, err = os.Stat("/usr/sbin/nginx"); err != nil {
			dockertest.Missing(t, "nginx is not installed; on Debian: apt-get install nginx-light")
		}
		program = "/usr/sbin/nginx"
	}
	dir := t.TempDir()
	blocks := proxyBlocks(t, "nginx", 6)
	if !strings.Contains(example, "listen") { // it stands in a server block
		example = blocks[2][:strings.Index(blocks[2], "location")] + example + "}\n"
	}
	certificate, certificateKey := filepath.Join(dir, "deckhand.pem"), filepath.Join(dir, "deckhand.key")
	selfSigned(t, certificate, certificateKey)
	example = regexp.MustCompile(`listen\s+443 ssl`).ReplaceAllString(example, "listen "+address+" ssl")
	example = strings.NewReplacer("deckhand.example.org", "localhost", "/etc/ssl/deckhand.pem", certificate, "/etc/ssl/deckhand.key", certificateKey,
		"127.0.0.1:3000", behind, "dh_your-key", key, "/var/log/nginx/deckhand.log", dir+"/access.log").Replace(example)
	config := "daemon off; master_process off; pid nginx.pid; error_log stderr notice;\nevents {}\nhttp {\naccess_log off;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		config += kind + "_temp_path " + dir + "/" + kind + ";\n"
	}
	for name, text := range map[string]string{"deckhand.inc": blocks[1], "nginx.conf": config + blocks[0] + example + "}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// It says so after it has bound its sockets.
	runProxy(t, exec.Command(program, "-p", dir, "-c", filepath.Join(dir, "nginx.conf"), "-e", "stderr"), regexp.MustCompile(`\[notice\].*nginx/`))
	return certificate
}

// runProxy runs a proxy until the test ends. It listens when it prints what matches up.
func runProxy(t *testing.T, cmd *exec.Cmd, up *regexp.Regexp) *syncBuffer {
	t.Helper()
	words, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listens, gone := make(chan struct{}), make(chan struct{})
	said := &syncBuffer{}
	go func() {
		defer close(gone)
		listening := false
		for lines := bufio.NewScanner(words); lines.Scan(); {
			fmt.Fprintln(said, lines.Text())
			if !listening && up.MatchString(lines.Text()) {
				listening = true
				close(listens)
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-gone
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said: %s", filepath.Base(cmd.Path), said)
		}
	})
	select {
	case <-listens:
	case <-gone:
		t.Fatalf("%s did not start: %s", filepath.Base(cmd.Path), said)
	}
	return said
}

// A real nginx in front, at the root and below a path, whose path it takes away
// or leaves: everything works, for programs and for browsers.
func TestBehindNginx(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: a real proxy is left out of the short round")
	}
	blocks := proxyBlocks(t, "nginx", 6)
	for _, c := range []struct {
		name, example, path string
		keyed               bool // the proxy adds the key
	}{
		{"at the root", blocks[2], "", false},
		{"path left", blocks[3], "/deckhand", false},
		{"path taken away", blocks[4], "/deckhand", false},
		{"key added", blocks[5], "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			front, behind := freeAddress(t), freeAddress(t)
			base := atLocalhost(front) + c.path
			b := serve(t, "", "--addr", behind, "--public-url", base)
			if b.base != base || !strings.HasPrefix(b.link, base+"/login#") {
				t.Fatalf("it says it is at %s, %s", b.base, b.link)
			}
			certificate := startNginx(t, front, behind, c.example, b.key)
			key := b.key
			if c.keyed {
				key = ""
				b.client = client.New(base, key)
			}
			b.client.HTTP = trusting(t, certificate)
			if !c.keyed {
				behindAsBrowser(t, b, c.path)
			}
			b.demo("scripted/demo")
			id := b.create("$ echo made > made.txt")
			defer (&person{box: b}).drop(id)
			behindAsClient(t, b, c.path, id)
			for _, transports := range []string{"polling", "websocket", "polling,websocket"} {
				behindAsSocket(t, atLocalhost(front), c.path, id, key, transports, certificate)
			}
		})
	}
}

// behindAsBrowser follows the login link and the links in the pages.
func behindAsBrowser(t *testing.T, b *box, path string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	origin := strings.TrimSuffix(b.base, path)
	web := &http.Client{Jar: jar, Transport: b.client.HTTP.Transport}
	ask := func(method, address, body string, want int) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html,*/*;q=0.8")
		if method == http.MethodPost {
			req.Header.Set("Origin", origin)
			req.Header.Set("Content-Type", "application/json")
		}
		res, err := web.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		if res.StatusCode != want {
			t.Fatalf("%s %s: %d %.200s", method, address, res.StatusCode, text)
		}
		for _, c := range res.Cookies() {
			if !c.Secure || !c.HttpOnly {
				t.Errorf("%s %s sets the cookie %s", method, address, c)
			}
		}
		return string(text)
	}
	links := regexp.MustCompile(`(?:href|src)="([^"#]+)["#]`)
	follow := func(page string, want int) {
		t.Helper()
		at, _ := url.Parse(page)
		text := ask("GET", page, "", want)
		if base := regexp.MustCompile(`<base href="([^"]+)"`).FindStringSubmatch(text); base != nil {
			at, _ = at.Parse(base[1])
			text = strings.Replace(text, base[0], "", 1)
		}
		found := links.FindAllStringSubmatch(text, -1)
		if len(found) == 0 {
			t.Errorf("%s has no links", page)
		}
		for _, m := range found {
			to, err := at.Parse(m[1])
			if err != nil {
				t.Fatal(err)
			}
			ask("GET", to.String(), "", 200)
		}
	}
	follow(b.base+"/docs", 401) // the login page in its place
	address, ticket, _ := strings.Cut(b.link, "#")
	follow(address, 200)
	ask("POST", b.base+"/api/login", `{"ticket":"`+ticket+`"}`, 200)
	here, _ := url.Parse(b.base + "/")
	elsewhere, _ := url.Parse(origin + "/elsewhere/")
	if len(jar.Cookies(here)) != 1 || len(jar.Cookies(elsewhere)) != map[bool]int{true: 1, false: 0}[path == ""] {
		t.Errorf("the cookie is sent to %v, and elsewhere %v", jar.Cookies(here), jar.Cookies(elsewhere))
	}
	for _, page := range []string{"/", "/conversations/unknown", "/conversations/unknown/files", "/settings/keys", "/docs"} {
		follow(b.base+page, 200)
	}
	ask("GET", b.base, "", 200) // a missing slash is mended
	var doc struct{ Servers []struct{ URL string } }
	if err := json.Unmarshal([]byte(ask("GET", b.base+"/openapi.json", "", 200)), &doc); err != nil || len(doc.Servers) != 1 || doc.Servers[0].URL != b.base {
		t.Errorf("servers %v, %v", doc.Servers, err)
	}
	ask("POST", b.base+"/api/logout", `{}`, 200)
	ask("GET", b.base+"/docs", "", 401)
	// Without Origin, only the proxy says that the browser uses TLS.
	res, err := b.client.HTTP.Post(b.base+"/api/login", "application/json", strings.NewReader(`{"key":"`+b.key+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if c := res.Cookies(); len(c) != 1 || !c[0].Secure {
		t.Errorf("a login without Origin sets %v", c)
	}
}

// behindAsClient leads a conversation, puts a file into its workspace, and opens a terminal.
func behindAsClient(t *testing.T, b *box, path, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	seen := b.follow(id, 0, agentIs("awaiting_user_input")) // the stream is open all the time: a proxy that buffers shows nothing
	if err := b.client.Say(ctx, id, "And again", ""); err != nil {
		t.Fatal(err)
	}
	if more := b.follow(id, seen[len(seen)-1].ID, agentIs("awaiting_user_input")); !inOrder(append(seen, more...)) {
		t.Errorf("out of order:\n%s", describe(more))
	}
	c, err := b.client.Conversation(ctx, id)
	if err != nil || c.URL == nil || *c.URL != path+"/api/conversations/"+id {
		t.Fatalf("%+v, %v", c, err)
	}
	large := bytes.Repeat([]byte("0123456789abcde\n"), 3<<16)
	if got, err := b.client.Upload(ctx, id, "", client.Upload{Name: "large.txt", Data: bytes.NewReader(large)}); err != nil || len(got.UploadedFiles) != 1 {
		t.Errorf("upload: %+v, %v", got, err)
	}
	if files, err := b.client.ListFiles(ctx, id, ""); err != nil || !strings.Contains(strings.Join(files, " "), "large.txt") || !strings.Contains(strings.Join(files, " "), "made.txt") {
		t.Errorf("%v, %v", files, err)
	}
	term, err := b.client.Terminal(ctx, id, "", api.TerminalSize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer term.Close()
	if _, err := io.WriteString(term, "echo $((6*7))-and-more\n"); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for buf := make([]byte, 4096); !strings.Contains(shown.String(), "42-and-more"); {
		n, err := term.Read(buf)
		if err != nil {
			t.Fatalf("the terminal: %v: %q", err, shown.String())
		}
		shown.Write(buf[:n])
	}
	conn, _, err := websocket.Dial(ctx, b.base+"/api/conversations/"+id+"/events/ws?after=0", &websocket.DialOptions{HTTPClient: b.client.HTTP, HTTPHeader: http.Header{"X-Session-Api-Key": {b.key}}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if _, frame, err := conn.Read(ctx); err != nil || !json.Valid(frame) {
		t.Errorf("%s, %v", frame, err)
	}
}

// behindAsSocket talks through the official client, in a process of its own, which trusts the certificate in a file.
func behindAsSocket(t *testing.T, origin, path, id, key, transports, certificate string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	query := map[string]any{"conversation_id": id, "latest_event_id": -1, "session_api_key": nil}
	if key != "" {
		query["session_api_key"] = key
	}
	job, err := json.Marshal(map[string]any{"origin": origin, "path": path + "/socket.io", "query": query, "transports": strings.Split(transports, ","), "text": "over " + transports})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "node", "testdata/socket.cjs", string(job))
	cmd.Env = append(os.Environ(), "NODE_PATH="+socketModules(t), "NODE_EXTRA_CA_CERTS="+certificate)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %.2000s", transports, err, out)
	}
	var got struct {
		Transport string
		Events    int
	}
	if err := json.Unmarshal(out, &got); err != nil || got.Events < 5 || got.Transport != transports[strings.LastIndex(transports, ",")+1:] {
		t.Errorf("%s: %s, %v", transports, out, err)
	}
}

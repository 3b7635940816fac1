package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/npmtest"
)

// identityVersion is of oidc-provider, a certified identity provider.
const identityVersion = "9.13.3"

// signingOn is a server whose people sign on at a real identity provider.
func signingOn(t *testing.T, more ...string) (b *box, issuer string) {
	t.Helper()
	modules := npmtest.Install(t, "oidc-provider-"+identityVersion, "oidc-provider@"+identityVersion)
	cmd := exec.Command("node", filepath.Join("testdata", "identity.mjs"), modules)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	words := &syncBuffer{}
	cmd.Stderr = words
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("the identity provider did not start: %s", words)
	}
	issuer = lines.Text()
	secretFile := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secretFile, []byte("identity-secret-canary\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b = serve(t, "", append([]string{"--oidc-issuer", issuer, "--oidc-client-id", "deckhand", "--oidc-client-secret-file", secretFile, "--oidc-scopes", "profile,email,groups"}, more...)...)
	redirects, err := json.Marshal([]string{b.base + "/login/oidc/callback", strings.Replace(b.base, "127.0.0.1", "localhost", 1) + "/login/oidc/callback"})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(in, "%s\n", redirects)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the identity provider is not ready: %s", words)
	}
	return b, issuer
}

// visitor is somebody with a browser: it keeps cookies, follows redirects and fills in forms.
type visitor struct {
	t    *testing.T
	base string
	http *http.Client
	// arrived is the address at which the provider sent it back, and flow the cookie it had with it.
	arrived *url.URL
	flow    string
}

func newVisitor(t *testing.T, base string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &visitor{t: t, base: base, http: &http.Client{Jar: jar, Transport: &http.Transport{}}}
	t.Cleanup(p.http.CloseIdleConnections)
	p.http.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Path == "/login/oidc/callback" {
			p.arrived = r.URL
			for _, c := range jar.Cookies(r.URL) {
				if c.Name == "deckhand_sign_on" {
					p.flow = c.Value
				}
			}
		}
		if len(via) > 10 {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return p
}

// read is the page that an answer leads to, and its address.
func (p *visitor) read(res *http.Response, err error) (page, at string) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b), res.Request.URL.RequestURI()
}

// form is that of the provider's login page.
var form = regexp.MustCompile(`<form method="post" action="([^"]+)">`)

// begin goes to the provider, and gives the address of its form.
func (p *visitor) begin() string {
	p.t.Helper()
	res, err := p.http.Get(p.base + "/login/oidc?next=/docs")
	page, at := p.read(res, err)
	action := form.FindStringSubmatch(page)
	if action == nil {
		p.t.Fatalf("there is no form at %s: %.300s", at, page)
	}
	return res.Request.URL.ResolveReference(&url.URL{Path: action[1]}).String()
}

// signOn goes through the provider's form, and says where that ends.
func (p *visitor) signOn(login string) (page, at string) {
	p.t.Helper()
	return p.read(p.http.PostForm(p.begin(), url.Values{"login": {login}}))
}

// me is who the server takes the person for.
func (p *visitor) me() (who api.Me, status int) {
	p.t.Helper()
	res, err := p.http.Get(p.base + "/api/me")
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	_ = json.NewDecoder(res.Body).Decode(&who)
	return who, res.StatusCode
}

// in signs on and must succeed.
func in(t *testing.T, b *box, login string, want api.Me) *visitor {
	t.Helper()
	p := newVisitor(t, b.base)
	page, at := p.signOn(login)
	if !strings.HasPrefix(at, "/login/oidc/callback?") || !strings.Contains(page, `url=../../docs"`) {
		t.Fatalf("%s ends at %s: %.300s\n%s", login, at, page, b.logs)
	}
	if who, status := p.me(); status != 200 || who != want {
		t.Fatalf("%s is %+v (%d), want %+v", login, who, status, want)
	}
	return p
}

// out signs on and must be sent to the login page with a reason.
func out(t *testing.T, b *box, login, why string) {
	t.Helper()
	p := newVisitor(t, b.base)
	if _, at := p.signOn(login); at != "/login?next=%2Fdocs&sign_on="+why {
		t.Errorf("%s ends at %s, want the reason %s\n%s", login, at, why, b.logs)
	}
	if who, status := p.me(); status != http.StatusUnauthorized {
		t.Errorf("%s is %+v", login, who)
	}
}

func TestSignOnAtARealProvider(t *testing.T) {
	t.Parallel()
	b, _ := signingOn(t, "--oidc-allowed-domains", "example.org", "--oidc-admin-group", "captains", "--oidc-name", "Example ID")
	if _, body, _ := b.raw("GET", "/api/login/options", "", "X-Session-API-Key", ""); body != `{"oidc":{"name":"Example ID","start_path":"/login/oidc"}}` {
		t.Errorf("got %s", body)
	}
	ada := in(t, b, "ada", api.Me{User: "ada"})
	in(t, b, "ada", api.Me{User: "ada"}) // from another browser
	in(t, b, "grace", api.Me{User: "grace-hopper", Admin: true})
	in(t, b, "mallory", api.Me{User: "admin-2"}) // and not admin, whatever she is called there
	out(t, b, "eve", "foreign")
	out(t, b, "una", "unverified")

	users, err := b.client.Users(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, u := range users {
		names = append(names, u.Name)
	}
	if got := strings.Join(names, " "); got != "ada admin admin-2 grace-hopper" {
		t.Errorf("the users are %s", got)
	}
	t.Run("e-mail", func(t *testing.T) { addresses(t, ada, b) })
	t.Run("cancel", func(t *testing.T) {
		p := newVisitor(t, b.base)
		if _, at := p.read(p.http.Get(p.begin() + "/abort")); at != "/login?next=%2Fdocs&sign_on=denied" {
			t.Errorf("ends at %s", at)
		}
	})
	t.Run("replay", func(t *testing.T) { replay(t, b, ada) })
	t.Run("disabled", func(t *testing.T) {
		if _, err := b.client.PatchUser(t.Context(), "ada", api.PatchUser{Disabled: api.Some(true)}); err != nil {
			t.Fatal(err)
		}
		if _, status := ada.me(); status != http.StatusUnauthorized {
			t.Errorf("she is still in: %d", status)
		}
		out(t, b, "ada", "disabled")
	})
	for _, secret := range []string{"identity-secret-canary", ada.arrived.Query().Get("code"), ada.flow} {
		if secret == "" || strings.Contains(b.logs.String(), secret) {
			t.Errorf("the log has %q in it", secret)
		}
	}
}

// addresses: the provider says whose address is verified, and the user does not.
func addresses(t *testing.T, ada *visitor, b *box) {
	store := func(body string) string {
		req, err := http.NewRequestWithContext(t.Context(), "POST", b.base+"/api/settings", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Origin", b.base)
		said, _ := ada.read(ada.http.Do(req))
		return said
	}
	shown := func() string {
		var s api.Settings
		text, _ := ada.read(ada.http.Get(b.base + "/api/settings"))
		if err := json.Unmarshal([]byte(text), &s); err != nil || s.Email == nil || s.EmailVerified == nil {
			t.Fatalf("%s: %v", text, err)
		}
		return fmt.Sprint(*s.Email, " ", *s.EmailVerified)
	}
	for _, step := range []struct{ send, ignored, want string }{
		{`{"llm_model":"scripted/demo"}`, "", "ada@example.org true"},
		{`{"email":"Ada@example.org","email_verified":true}`, "", "Ada@example.org true"},
		{`{"email":"other@example.org","email_verified":true}`, "", "other@example.org false"},
		{`{"email_verified":true}`, "email_verified", "other@example.org false"},
		{`{"email":""}`, "", "ada@example.org true"},
	} {
		said := store(step.send)
		if !strings.Contains(said, "Settings stored") || strings.Contains(said, "ignored_fields") != (step.ignored != "") || !strings.Contains(said, step.ignored) {
			t.Errorf("%s: %s", step.send, said)
		}
		if got := shown(); got != step.want {
			t.Errorf("%s: the address is %s, want %s", step.send, got, step.want)
		}
	}
}

// replay does with somebody's answer what an attacker would.
func replay(t *testing.T, b *box, victim *visitor) {
	again := func(p *visitor, cookie string) string {
		req, err := http.NewRequestWithContext(t.Context(), "GET", victim.arrived.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if cookie != "" {
			req.AddCookie(&http.Cookie{Name: "deckhand_sign_on", Value: cookie})
		}
		_, at := p.read(p.http.Do(req))
		return at
	}
	if at := again(victim, ""); at != "/login?sign_on=expired" { // the browser's own was taken away
		t.Errorf("the same browser ends at %s", at)
	}
	stranger := newVisitor(t, b.base)
	if at := again(stranger, ""); at != "/login?sign_on=expired" {
		t.Errorf("a code in another browser ends at %s", at)
	}
	if at := again(stranger, victim.flow); at != "/login?next=%2Fdocs&sign_on=failed" { // the provider takes no code twice
		t.Errorf("a code and a cookie that were used end at %s", at)
	}
	other := newVisitor(t, b.base)
	other.begin()
	if at := again(other, ""); at != "/login?sign_on=expired" { // she is to be logged in as the attacker
		t.Errorf("somebody else's answer ends at %s", at)
	}
	for _, p := range []*visitor{stranger, other} {
		if who, status := p.me(); status != http.StatusUnauthorized {
			t.Errorf("logged in as %+v", who)
		}
	}
}

// A browser keeps the login cookie from whoever comes from another site, the provider among them.
func TestSignOnInARealBrowser(t *testing.T) {
	t.Parallel()
	address := startChromium(t)
	b, issuer := signingOn(t)
	here := strings.Replace(b.base, "127.0.0.1", "localhost", 1) // which is another site than the provider's
	tab := newTab(t, address)
	tab.open(here + "/login/oidc?next=/docs")
	tab.arrive("location.origin", issuer)
	evaluate[string](tab, `(() => { document.querySelector("input").value = "ada"; document.querySelector("form").submit(); return "" })()`)
	tab.arrive("location.href", here+"/docs")
	if who := evaluate[string](tab, `fetch("/api/me").then((a) => a.text())`); who != `{"user":"ada","admin":false}` {
		t.Errorf("got %s", who)
	}
	if title, cookies := evaluate[string](tab, "document.title"), evaluate[string](tab, "document.cookie"); strings.Contains(title, "Log in") || strings.Contains(cookies, "deckhand") {
		t.Errorf("arrived at %q, and scripts see %q", title, cookies)
	}
	if wrong := tab.wrong(); len(wrong) > 0 {
		t.Errorf("the console shows %q", wrong)
	}
}

// Who opens a page, says no at the provider and then yes is on that page.
func TestSignOnAtTheSecondTry(t *testing.T) {
	t.Parallel()
	address := startChromium(t)
	b, issuer := signingOn(t)
	wanted := strings.Replace(b.base, "127.0.0.1", "localhost", 1) + "/settings/keys?x=1"
	tab := newTab(t, address)
	// appears waits until the page shows something, and reads it.
	appears := func(what string) string {
		return evaluate[string](tab, `new Promise((done) => { const look = () => { const got = `+what+`; if (got) done(String(got)); else setTimeout(look, 20); }; look(); })`)
	}
	leave := func() {
		appears(`document.querySelector("a[href*='/login/oidc?']")`)
		evaluate[string](tab, `(document.querySelector("a[href*='/login/oidc?']").click(), "")`)
		tab.arrive("location.origin", issuer)
	}
	tab.open(wanted)
	leave()
	evaluate[string](tab, `(location.href += "/abort", "")`)
	tab.arrive("new URL(location.href).hostname", "localhost")
	if said := appears(`document.querySelector("[role=alert] p")?.innerText`); said != "The identity provider denied access." {
		t.Errorf("the page says %q", said)
	}
	leave()
	evaluate[string](tab, `(() => { document.querySelector("input").value = "ada"; document.querySelector("form").submit(); return "" })()`)
	tab.arrive("location.href", wanted)
	if title := appears(`!document.title.startsWith("Log in") && document.querySelector("main h1") && document.title`); title != "Access keys · Deckhand" {
		t.Errorf("arrived at %q", title)
	}
	if wrong := tab.wrong(); len(wrong) > 0 {
		t.Errorf("the console shows %q", wrong)
	}
}

func TestSignOnFlags(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const issuer = "https://id.example.org"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--oidc-client-id", "x"}, "need --oidc-issuer"},
		{[]string{"--oidc-issuer", issuer}, "client ID is missing"},
		{[]string{"--oidc-issuer", "http://id.example.org", "--oidc-client-id", "x"}, "must be an https URL"},
		{[]string{"--oidc-issuer", issuer, "--oidc-client-id", "x", "--oidc-client-secret-file", empty}, "is empty"},
		{[]string{"--oidc-issuer", issuer, "--oidc-client-id", "x", "--oidc-client-secret-file", empty + "-not"}, "--oidc-client-secret-file"},
		{[]string{"--oidc-issuer", issuer, "--oidc-client-id", "x", "--oidc-allowed-domains", "@"}, "not an e-mail domain"},
	} {
		code, _, stderr := command(t, append([]string{"serve", "--data-dir", t.TempDir(), "--addr", "127.0.0.1:0", "--sandbox", "host"}, c.args...)...)
		if code == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: %d %s", c.args, code, stderr)
		}
	}
}

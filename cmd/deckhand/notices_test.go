package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/notify/mail/mailtest"
	"deckhand/internal/notify/push/pushtest"
	"deckhand/internal/sandbox/docker/dockertest"
)

// subscribe makes a browser that gets the notifications of the box's user.
func (b *box) subscribe() (*pushtest.Browser, api.NotificationDevice) {
	b.t.Helper()
	n, err := b.client.Notifications(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	browser := pushtest.New(b.t, n.Push.PublicKey)
	return browser, b.register(browser)
}

func (b *box) register(browser *pushtest.Browser) api.NotificationDevice {
	b.t.Helper()
	d, err := b.client.AddNotificationDevice(b.t.Context(), api.AddNotificationDevice{Endpoint: browser.Endpoint(), Description: api.Some("Firefox on Linux"),
		Keys: api.PushKeys{P256dh: browser.P256dh(), Auth: browser.Auth()}})
	if err != nil {
		b.t.Fatal(err)
	}
	return d
}

// mailed has the user's address verified by the link that is mailed, and e-mail enabled.
func (b *box) mailed(s *mailtest.Server) {
	b.t.Helper()
	ctx := b.t.Context()
	if _, err := b.client.StoreSettings(ctx, api.SettingsInput{Email: api.Some("ada@example.org")}); err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.client.RequestEmailVerification(ctx); err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.client.VerifyEmail(ctx, linkToken(b.t, <-s.Got)); err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.client.PatchNotifications(ctx, api.PatchNotifications{EmailEnabled: api.Some(true)}); err != nil {
		b.t.Fatal(err)
	}
}

func linkToken(t *testing.T, m mailtest.Mail) string {
	t.Helper()
	_, token, ok := strings.Cut(m.Text, "/settings/notifications#verify=")
	if !ok {
		t.Fatalf("no link in %q", m.Text)
	}
	return strings.Fields(token)[0]
}

// mailServer is one on this machine without TLS, as a local relay is.
func mailServer(t *testing.T) *mailtest.Server {
	s := mailtest.New(t, false)
	s.Plain = true
	return s
}

func TestNotificationsReachBrowsersAndMail(t *testing.T) {
	t.Parallel()
	mails := mailServer(t)
	b := serve(t, "", "--smtp-url", mails.URL("deckhand@example.org"))
	b.demo("scripted/demo")
	browser, device := b.subscribe()
	if device.Service != "127.0.0.1" || device.Description != "Firefox on Linux" {
		t.Errorf("%+v", device)
	}
	b.mailed(mails)
	id := b.create("Mend the fence")
	got, mail := <-browser.Got, <-mails.Got
	if got.Title != "Mend the fence" || got.Body != "Waiting for your reply" || got.Path != "conversations/"+id || got.Header.Get("Urgency") != "high" {
		t.Errorf("pushed %+v", got)
	}
	if mail.To != "ada@example.org" || mail.Header.Get("Subject") != "Waiting for your reply: Mend the fence" || !strings.Contains(mail.Text, b.base+"/conversations/"+id+"\r\n") {
		t.Errorf("mailed %q, %v", mail.Text, mail.Header)
	}
	if strings.Contains(mail.Raw+mail.Text, "scripted") {
		t.Error("the mail has what was said")
	}

	// In the user's language, and an approval before it is decided.
	if _, err := b.client.StoreSettings(t.Context(), api.SettingsInput{Language: api.Some("de"), ConfirmationMode: api.Some(true)}); err != nil {
		t.Fatal(err)
	}
	asks := b.create("$ echo hi")
	if got, mail := <-browser.Got, <-mails.Got; got.Body != "Freigabe nötig" || got.Tag != asks || !strings.HasPrefix(mail.Text, "Freigabe nötig: $ echo hi\r\n") {
		t.Errorf("pushed %+v, mailed %q", got, mail.Text)
	}
	// A muted conversation and an unwanted kind say nothing; what a test says comes after them.
	if n, err := b.client.MuteConversation(t.Context(), id, true); err != nil || len(n.MutedConversations) != 1 {
		t.Fatal(n, err)
	}
	at := (&person{box: b}).last(id)
	if err := b.client.Say(t.Context(), id, "again", "again"); err != nil {
		t.Fatal(err)
	}
	b.follow(id, at, agentIs("awaiting_user_input"))
	if err := b.client.TestNotificationDevice(t.Context(), device.ID); err != nil {
		t.Fatal(err)
	}
	if got := <-browser.Got; got.Title != "Testbenachrichtigung" {
		t.Errorf("pushed %+v", got)
	}
	if len(browser.Errors) > 0 || len(mails.Got) > 0 {
		t.Errorf("%d messages were refused, %d mails too many", len(browser.Errors), len(mails.Got))
	}
	for _, secret := range []string{browser.Endpoint(), browser.Auth(), mailtest.Password} {
		if strings.Contains(b.logs.String(), secret) {
			t.Errorf("the log shows %s", secret)
		}
	}
}

// A link verifies one address of one user, once.
func TestVerificationLink(t *testing.T) {
	t.Parallel()
	mails := mailServer(t)
	b := serve(t, "", "--smtp-url", mails.URL("deckhand@example.org"))
	b.demo("scripted/demo")
	ctx := t.Context()
	stored, err := b.client.StoreSettings(ctx, api.SettingsInput{Email: api.Some("ada@example.org"), EmailVerified: api.Some(true)})
	if err != nil || len(stored.IgnoredFields) != 1 || stored.IgnoredFields[0] != "email_verified" {
		t.Errorf("%+v %v", stored, err)
	}
	request := func() string {
		t.Helper()
		if _, err := b.client.RequestEmailVerification(ctx); err != nil {
			t.Fatal(err)
		}
		return linkToken(t, <-mails.Got)
	}
	refused := func(who *client.Client, token, why string) {
		t.Helper()
		if _, err := who.VerifyEmail(ctx, token); statusOf(err) != http.StatusConflict || !strings.Contains(err.Error(), "invalid, has expired or was already used") {
			t.Errorf("%s: %v", why, err)
		}
	}
	first := request()
	code, key, errs := command(t, "key", "create", "--user", "bob", "--data-dir", b.dir)
	if code != 0 {
		t.Fatal(errs)
	}
	bob := client.New(b.base, strings.TrimSpace(key))
	refused(bob, first, "another user's")
	token := request()
	refused(b.client, first, "a link before the last")
	refused(b.client, token+"x", "a wrong one")
	if _, err := b.client.StoreSettings(ctx, api.SettingsInput{Email: api.Some("eve@example.org")}); err != nil {
		t.Fatal(err)
	}
	refused(b.client, token, "another address")
	if _, err := b.client.StoreSettings(ctx, api.SettingsInput{Email: api.Some("ada@example.org")}); err != nil {
		t.Fatal(err)
	}
	if n, err := b.client.VerifyEmail(ctx, token); err != nil || !n.Email.Verified || n.Email.Pending {
		t.Errorf("%+v %v", n.Email, err)
	}
	refused(b.client, token, "a used one")
	if s, err := b.client.Settings(ctx); err != nil || s.EmailVerified == nil || !*s.EmailVerified {
		t.Errorf("%+v %v", s.EmailVerified, err)
	}
	if _, err := b.client.StoreSettings(ctx, api.SettingsInput{Email: api.Some("eve@example.org")}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		request()
	}
	if _, err := b.client.RequestEmailVerification(ctx); err == nil || !strings.Contains(err.Error(), "Try again in an hour") {
		t.Errorf("a sixth link: %v", err)
	}
	if strings.Contains(b.logs.String(), token) {
		t.Error("the log shows the token")
	}
}

// A server that is killed while it sends sends again, as the same message: a browser replaces the
// first by its tag, and mail systems know the message by its ID. What was settled is not sent again.
func TestKilledServerNotifiesLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mails := mailServer(t)
	pushing, mailing, killed := make(chan struct{}, 10), make(chan mailtest.Mail, 10), make(chan struct{})
	url := mails.URL("deckhand@example.org")
	b, cmd := spawn(t, dir, "--smtp-url", url)
	b.demo("scripted/demo")
	b.mailed(mails)
	mails.Before = func(m mailtest.Mail) { mailing <- m; <-killed }
	n, err := b.client.Notifications(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	browser := pushtest.New(t, n.Push.PublicKey)
	browser.Before = func(pushtest.Message) { pushing <- struct{}{}; <-killed }
	b.register(browser)
	id := b.create("hello")
	<-pushing
	before := <-mailing
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	close(killed)
	first := <-browser.Got // what was under way arrived, and the server does not know it
	<-mails.Got

	again := serve(t, dir, "--smtp-url", url)
	got, mail := <-browser.Got, <-mails.Got
	if got.Tag != first.Tag || got.Tag != id || got.Header.Get("Topic") != first.Header.Get("Topic") || mail.Header.Get("Message-Id") != before.Header.Get("Message-Id") {
		t.Errorf("pushed %+v after %+v, mailed %v after %v", got, first, mail.Header, before.Header)
	}
	again.settled(2)
	again.stop()
	third := serve(t, dir, "--smtp-url", url)
	third.follow(third.create("hello"), 0, agentIs("awaiting_user_input"))
	if got, mail := <-browser.Got, <-mails.Got; got.Tag == id || strings.Contains(mail.Text, id) {
		t.Errorf("it was announced again: %+v, %s", got, mail.Text)
	}
}

// settled waits until so many deliveries are recorded, which only the metrics tell.
func (b *box) settled(n int) {
	b.t.Helper()
	want := "deckhand_webhook_delivered_total " + string(rune('0'+n))
	b.until("deliveries are settled", func() bool { _, text, _ := b.raw("GET", "/metrics", ""); return strings.Contains(text, want) })
}

func TestQuietHoursAreWaitedFor(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	browser, device := b.subscribe()
	at := time.Now().UTC()
	patch := func(q api.Opt[api.QuietHours]) {
		t.Helper()
		if _, err := b.client.PatchNotifications(t.Context(), api.PatchNotifications{QuietHours: q}); err != nil {
			t.Fatal(err)
		}
	}
	patch(api.Some(api.QuietHours{Start: at.Add(-2 * time.Hour).Format("15:04"), End: at.Add(2 * time.Hour).Format("15:04"), TimeZone: "UTC"}))
	seen := b.create("seen")
	b.follow(seen, 0, agentIs("awaiting_user_input"))
	waits := b.create("waits")
	b.follow(waits, 0, agentIs("awaiting_user_input"))
	if err := b.client.TestNotificationDevice(t.Context(), device.ID); err != nil { // which is never held back
		t.Fatal(err)
	}
	if got := <-browser.Got; got.Title != "Test notification" {
		t.Errorf("in quiet hours it was told of %+v", got)
	}
	if err := b.client.Delete(t.Context(), seen); err != nil {
		t.Fatal(err)
	}
	patch(api.Null[api.QuietHours]())
	if got := <-browser.Got; got.Tag != waits {
		t.Errorf("after quiet hours it was told of %+v", got)
	}
	for _, q := range []api.QuietHours{{Start: "9", End: "10:00", TimeZone: "UTC"}, {Start: "09:00", End: "09:00", TimeZone: "UTC"}, {Start: "09:00", End: "10:00", TimeZone: "Mars/Olympus"}} {
		if _, err := b.client.PatchNotifications(t.Context(), api.PatchNotifications{QuietHours: api.Some(q)}); statusOf(err) != http.StatusUnprocessableEntity {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// A push service says when a subscription has ended, and a browser belongs to the user who
// subscribed with it last.
func TestDevicesComeAndGo(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	browser, device := b.subscribe()
	if again := b.register(browser); again.ID != device.ID {
		t.Errorf("the same browser is another device: %+v", again)
	}
	code, key, errs := command(t, "key", "create", "--user", "bob", "--data-dir", b.dir)
	if code != 0 {
		t.Fatal(errs)
	}
	bob := &box{t: t, client: client.New(b.base, strings.TrimSpace(key))}
	if err := bob.client.DeleteNotificationDevice(t.Context(), device.ID); !client.IsNotFound(err) {
		t.Errorf("another user removes it: %v", err)
	}
	if err := b.client.DeleteWebhook(t.Context(), device.ID); !client.IsNotFound(err) {
		t.Errorf("it is a webhook: %v", err)
	}
	bob.register(browser)
	if n, err := b.client.Notifications(t.Context()); err != nil || len(n.Push.Devices) != 0 {
		t.Errorf("%+v %v", n.Push, err)
	}
	b.register(browser)
	browser.Status.Store(http.StatusGone)
	if err := b.client.TestNotificationDevice(t.Context(), device.ID); err != nil {
		t.Fatal(err)
	}
	<-browser.Got
	b.until("the device is removed", func() bool {
		n, err := b.client.Notifications(t.Context())
		return err == nil && len(n.Push.Devices) == 0
	})
	for _, in := range []api.AddNotificationDevice{
		{Endpoint: "ftp://example.org", Keys: api.PushKeys{P256dh: browser.P256dh(), Auth: browser.Auth()}},
		{Endpoint: browser.Endpoint(), Keys: api.PushKeys{P256dh: "AA", Auth: browser.Auth()}},
	} {
		if _, err := b.client.AddNotificationDevice(t.Context(), in); statusOf(err) != http.StatusUnprocessableEntity {
			t.Errorf("%+v: %v", in, err)
		}
	}
	if _, err := b.client.RequestEmailVerification(t.Context()); err == nil || !strings.Contains(err.Error(), "--smtp-url") {
		t.Errorf("without a mail server: %v", err)
	}
}

// A server that others can reach does not let users reach into its own network.
func TestPublicServerPushesToNoPrivateAddress(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	browser, device := b.subscribe()
	b.stop()
	b = serve(t, b.dir, "--addr", "0.0.0.0:0", "--behind-proxy")
	for _, host := range []string{"127.0.0.1:1", "10.0.0.7", "[::1]:8080", "localhost", "169.254.169.254"} {
		_, err := b.client.AddNotificationDevice(t.Context(), api.AddNotificationDevice{Endpoint: "https://" + host + "/push", Keys: api.PushKeys{P256dh: browser.P256dh(), Auth: browser.Auth()}})
		if statusOf(err) != http.StatusUnprocessableEntity || !strings.Contains(err.Error(), "endpoint") {
			t.Errorf("a browser at %s: %v", host, err)
		}
	}
	if err := b.client.TestNotificationDevice(t.Context(), device.ID); err != nil {
		t.Fatal(err)
	}
	b.until("the attempt is refused", func() bool { return strings.Contains(b.logs.String(), "--allow-private") })
	if len(browser.Got)+len(browser.Errors) > 0 {
		t.Error("it was dialled")
	}
}

// The app, its service worker and the section of the settings, in a real browser.
func TestNoticesInABrowser(t *testing.T) {
	t.Parallel()
	program := findChromium(t)
	if strings.HasSuffix(program, "headless-shell") { // it refuses all notifications
		var err error
		if program, err = exec.LookPath("chromium"); err != nil {
			dockertest.Missing(t, "no complete Chromium is installed; on Debian: apt-get install chromium")
		}
	}
	needPage(t)
	mails := mailServer(t)
	h := &theatre{address: freeAddress(t), people: map[string]*client.Client{}, keys: map[string]string{}}
	h.lab = newLab(t, "", "--addr", h.address, "--smtp-url", mails.URL("deckhand@example.org"))
	h.join(t, "ada", "bob", "cleo")
	n, err := h.client.Notifications(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	browser := pushtest.New(t, n.Push.PublicKey)
	mux := http.NewServeMux()
	mux.HandleFunc("/pushed", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte((<-browser.Got).Title)) })
	mux.HandleFunc("/mailed", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(h.base + "/settings/notifications#verify=" + linkToken(t, <-mails.Got)))
	})
	site := httptest.NewServer(mux)
	defer site.Close()
	defer h.strike()
	act(t, "notices.mjs", map[string]any{"base": h.base, "keys": h.keys, "chromium": program, "pictures": os.Getenv("DECKHAND_PICTURES"), "pushed": site.URL + "/pushed", "mailed": site.URL + "/mailed",
		"subscription": map[string]any{"endpoint": browser.Endpoint(), "keys": map[string]string{"p256dh": browser.P256dh(), "auth": browser.Auth()}}}, h.obey)
}

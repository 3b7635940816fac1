package trigger_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"deckhand/internal/gitprovider"
	"deckhand/internal/trigger"
)

// shape is how one provider writes its deliveries.
type shape struct {
	event, id string
	// sign signs a body.
	sign func(t *testing.T, h http.Header, body []byte, secret string)
	// comment, pull and label name the files and the events.
	comment, pull, label [2]string
	repository           string
}

func mac(header, prefix string) func(*testing.T, http.Header, []byte, string) {
	return func(_ *testing.T, h http.Header, body []byte, secret string) {
		m := hmac.New(sha256.New, []byte(secret))
		m.Write(body)
		h.Set(header, prefix+hex.EncodeToString(m.Sum(nil)))
	}
}

var shapes = map[string]shape{
	"github": {"X-GitHub-Event", "X-GitHub-Delivery", mac("X-Hub-Signature-256", "sha256="),
		[2]string{"github_issue_comment", "issue_comment"}, [2]string{"github_pull_comment", "issue_comment"}, [2]string{"github_issue_labeled", "issues"}, "octo/app"},
	"gitlab": {"X-Gitlab-Event", "Idempotency-Key", func(_ *testing.T, h http.Header, _ []byte, secret string) { h.Set("X-Gitlab-Token", secret) },
		[2]string{"gitlab_issue_comment", "Note Hook"}, [2]string{"gitlab_pull_comment", "Note Hook"}, [2]string{"gitlab_issue_labeled", "Issue Hook"}, "octo/sub/app"},
	"bitbucket": {"X-Event-Key", "X-Request-UUID", mac("X-Hub-Signature", "sha256="),
		[2]string{"bitbucket_issue_comment", "issue:comment_created"}, [2]string{"bitbucket_pull_comment", "pullrequest:comment_created"}, [2]string{}, "octo/app"},
	"gitea": {"X-Gitea-Event", "X-Gitea-Delivery", mac("X-Gitea-Signature", ""),
		[2]string{"gitea_issue_comment", "issue_comment"}, [2]string{"gitea_pull_comment", "issue_comment"}, [2]string{"gitea_issue_labeled", "issues"}, "octo/app"},
	"forgejo": {"X-Forgejo-Event", "X-Forgejo-Delivery", mac("X-Forgejo-Signature", ""),
		[2]string{"gitea_issue_comment", "issue_comment"}, [2]string{"gitea_pull_comment", "issue_comment"}, [2]string{"gitea_issue_labeled", "issues"}, "octo/app"},
}

// delivery is one on its way.
type delivery struct {
	provider string
	header   http.Header
	body     []byte
}

// deliver makes one: what is a file and an event, and fill what is in its holes.
func deliver(t *testing.T, provider string, what [2]string, id string, fill ...string) delivery {
	t.Helper()
	h := http.Header{"Content-Type": {"application/json"}}
	h.Set(shapes[provider].event, what[1])
	if id != "" {
		h.Set(shapes[provider].id, id)
	}
	return delivery{provider, h, trigger.Payload(t, what[0], append(fill, "NOW", time.Now().UTC().Format(time.RFC3339))...)}
}

func (r *rig) send(d delivery, secret string) (trigger.Receipt, error) {
	r.t.Helper()
	if secret != "" {
		shapes[d.provider].sign(r.t, d.header, d.body, secret)
	}
	return r.receiver.Receive(r.t.Context(), d.provider, "", d.header, d.body)
}

// log is what an integration's deliveries came to, newest first.
func (r *rig) log(in trigger.Integration) []trigger.Delivery {
	r.t.Helper()
	found, err := r.integrations.Page(r.t.Context(), in.User, in.ID, 0, 2000)
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

// Who has no token that does is told so, in one sentence.
func TestCreateWithoutToken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.integrations.Whoami = func(context.Context, string, string) (string, string, error) {
		return "", "", gitprovider.Failure("gitea", "", gitprovider.BadToken, "")
	}
	_, _, err := r.integrations.Create(t.Context(), "maria", "gitea", trigger.Change{})
	invalid, ok := errors.AsType[*trigger.InvalidError](err)
	if !ok || invalid.Field != "provider" || !strings.Contains(invalid.Msg, "rejected the stored token") || strings.HasSuffix(invalid.Msg, ".") {
		t.Error(err)
	}
}

func TestReceive(t *testing.T) {
	t.Parallel()
	for provider, s := range shapes {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			in, secret := r.add("maria", provider, trigger.Change{Repositories: []string{s.repository}})
			other, theirs := r.add("otto", provider, trigger.Change{AllowedUsers: []string{trigger.AllUsers}})
			want := func(name string, d delivery, secret string, state trigger.State, known bool, reason string) {
				t.Helper()
				got, err := r.send(d, secret)
				if err != nil || got.State != state || got.Known != known || !strings.Contains(got.Reason, reason) {
					t.Errorf("%s: %+v %v", name, got, err)
				}
			}
			comment := deliver(t, provider, s.comment, "1")
			want("a comment", comment, secret, trigger.Waiting, false, "")
			want("the same once more", comment, secret, trigger.Waiting, true, "")
			renamed := deliver(t, provider, s.comment, "other")
			renamed.body = comment.body
			want("the same under another name", renamed, secret, trigger.Waiting, true, "")
			want("a pull request", deliver(t, provider, s.pull, "2"), secret, trigger.Waiting, false, "")
			if s.label[0] != "" {
				want("a label", deliver(t, provider, s.label, "3"), secret, trigger.Waiting, false, "")
				want("another label", deliver(t, provider, s.label, "4", `"deckhand"`, `"bug"`), secret, trigger.Ignored, false, "The label does not match.")
			}
			own := strings.ReplaceAll(gitprovider.Sign("@deckhand says", "x 1"), "\n", `\n`)
			want("its own comment", deliver(t, provider, s.comment, "5", "TEXT", own), secret, trigger.Ignored, false, "Written by Deckhand itself.")
			want("no mention", deliver(t, provider, s.comment, "6", "TEXT", "hello"), secret, trigger.Ignored, false, "does not mention @deckhand")
			want("somebody else", deliver(t, provider, s.comment, "7", "ACTOR", "mallory"), secret, trigger.Ignored, false, "allowed_users")
			want("another repository", deliver(t, provider, s.comment, "8", `"`+s.repository+`"`, `"octo/other"`), secret, trigger.Ignored, false, "repository")
			late := time.Now().Add(-trigger.KeptFor - time.Hour).UTC().Format(time.RFC3339)
			want("long ago", deliver(t, provider, s.comment, "9", "NOW", late), secret, trigger.Ignored, false, "7 days old")
			want("the other user's", deliver(t, provider, s.comment, "1", "ACTOR", "mallory"), theirs, trigger.Waiting, false, "")
			nameless := deliver(t, provider, s.comment, "", "TEXT", "@deckhand nameless")
			want("without a name", nameless, secret, trigger.Waiting, false, "")
			want("without a name, again", nameless, secret, trigger.Waiting, true, "")

			if n := len(r.log(other)); n != 1 {
				t.Errorf("the other user got %d", n)
			}
			before := len(r.log(in))
			for name, d := range map[string]struct {
				secret string
				spoil  func(d *delivery)
			}{
				"no signature":     {"", func(*delivery) {}},
				"a wrong secret":   {"whsec_AAAA", func(*delivery) {}},
				"an empty secret":  {" ", func(*delivery) {}},
				"another provider": {secret, func(d *delivery) { d.provider = map[bool]string{true: "gitlab", false: "github"}[provider != "gitlab"] }},
			} {
				bad := deliver(t, provider, s.comment, "bad")
				if d.secret != "" {
					s.sign(t, bad.header, bad.body, d.secret)
				}
				d.spoil(&bad)
				if got, err := r.send(bad, ""); !errors.Is(err, trigger.ErrUnsigned) || got != (trigger.Receipt{}) {
					t.Errorf("%s: %+v %v", name, got, err)
				}
			}
			if provider != "gitlab" { // whose token signs nothing
				changed := deliver(t, provider, s.comment, "changed")
				s.sign(t, changed.header, changed.body, secret)
				changed.body = append(changed.body, ' ')
				if _, err := r.send(changed, ""); !errors.Is(err, trigger.ErrUnsigned) {
					t.Errorf("a changed body: %v", err)
				}
			}
			if now := len(r.log(in)); now != before {
				t.Errorf("%d deliveries without a signature were recorded", now-before)
			}
			broken := deliver(t, provider, s.comment, "broken")
			broken.body = broken.body[:len(broken.body)/2]
			if _, err := r.send(broken, secret); !errors.Is(err, trigger.ErrUnreadable) || r.log(in)[0].State != trigger.Ignored {
				t.Errorf("malformed: %v", err)
			}
			if r.logs.String() == "" || strings.Contains(r.logs.String(), secret) || strings.Contains(r.logs.String(), "rolls away") {
				t.Errorf("the log: %s", r.logs)
			}
		})
	}
}

// GitLab signs what it sends if it has a key; the secret is in the form it wants.
func TestReceiveSignedByGitLab(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, secret := r.add("maria", "gitlab", trigger.Change{})
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		at   time.Time
		want error
	}{"now": {time.Now(), nil}, "old": {time.Now().Add(-time.Hour), trigger.ErrUnsigned}} {
		d := deliver(t, "gitlab", shapes["gitlab"].comment, "", "TEXT", "@deckhand "+name)
		signature, err := hook.Sign("msg-"+name, test.at, d.body)
		if err != nil {
			t.Fatal(err)
		}
		d.header.Set("webhook-id", "msg-"+name)
		d.header.Set("webhook-timestamp", itoa(test.at.Unix()))
		d.header.Set("webhook-signature", signature)
		if _, err := r.send(d, ""); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// GitHub sends forms unless it is told otherwise.
func TestReceiveForm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, secret := r.add("maria", "github", trigger.Change{})
	d := deliver(t, "github", shapes["github"].comment, "1")
	d.body = []byte("payload=" + url.QueryEscape(string(d.body)))
	d.header.Set("Content-Type", "application/x-www-form-urlencoded")
	if got, err := r.send(d, secret); err != nil || got.State != trigger.Waiting {
		t.Errorf("%+v %v", got, err)
	}
}

// An id in the address narrows the search; a disabled integration hears nothing;
// a replaced secret is good for a day.
func TestReceiveForOne(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	in, old := r.add("maria", "gitea", trigger.Change{})
	other, _ := r.add("otto", "gitea", trigger.Change{})
	n := 0
	ask := func(id, secret string, want error) {
		t.Helper()
		n++
		d := deliver(t, "gitea", shapes["gitea"].comment, itoa(int64(n)), "TEXT", "@deckhand "+itoa(int64(n)))
		shapes["gitea"].sign(t, d.header, d.body, secret)
		if _, err := r.receiver.Receive(t.Context(), "gitea", id, d.header, d.body); !errors.Is(err, want) {
			t.Errorf("delivery %d: %v", n, err)
		}
	}
	ask(in.ID, old, nil)
	ask(other.ID, old, trigger.ErrUnsigned)
	ask("int_nothing", old, trigger.ErrUnsigned)
	if !strings.HasSuffix(r.integrations.Address(in), "/integrations/gitea/webhook?integration="+in.ID) {
		t.Error(r.integrations.Address(in))
	}
	change := func(c trigger.Change) string {
		t.Helper()
		_, shown, err := r.integrations.Change(t.Context(), "maria", in.ID, c)
		if err != nil {
			t.Fatal(err)
		}
		return shown.Reveal()
	}
	fresh := change(trigger.Change{RotateSecret: true})
	ask("", fresh, nil)
	ask("", old, nil)
	newest := change(trigger.Change{RotateSecret: true})
	ask("", newest, nil)
	ask("", old, trigger.ErrUnsigned)
	no, yes := false, true
	change(trigger.Change{Enabled: &no})
	ask("", newest, trigger.ErrUnsigned)
	change(trigger.Change{Enabled: &yes})
	ask("", newest, nil)
	if stored, err := r.integrations.Get(t.Context(), "maria", in.ID); err != nil || bytes.Contains(stored.Sealed, []byte(newest)) {
		t.Errorf("the secret is not sealed: %v", err)
	}
	if _, err := r.receiver.Receive(t.Context(), "sourceforge", "", http.Header{}, nil); !errors.Is(err, trigger.ErrNotFound) {
		t.Errorf("an unknown provider: %v", err)
	}
}

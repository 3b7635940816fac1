package notify

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"deckhand/internal/secret"
)

// Sealer seals what is stored for a user.
type Sealer interface {
	Seal(ctx context.Context, user, field string, plaintext []byte) ([]byte, error)
	Open(ctx context.Context, user, field string, sealed []byte) ([]byte, error)
}

// InvalidError says what is wrong with a given value. Msg never contains the value.
type InvalidError struct{ Field, Msg string }

func (e *InvalidError) Error() string { return e.Msg }

// target is where a webhook's deliveries go and what signs them. The URL is as secret as the
// key: anyone who knows that of a chat system can post there.
type target struct {
	URL string `json:"url"`
	secret.Rotating
}

// sign sets the three headers. The time is that of the attempt: receivers refuse
// what is too old.
func (t *target) sign(h http.Header, id string, now time.Time, body []byte) error {
	var signatures []string
	for _, s := range t.Good(now) {
		signer, err := standardwebhooks.NewWebhook(s)
		if err != nil {
			return err
		}
		signature, err := signer.Sign(id, now, body)
		if err != nil {
			return err
		}
		signatures = append(signatures, signature)
	}
	h.Set(standardwebhooks.HeaderWebhookID, id)
	h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	h.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return nil
}

// field is what a target is sealed as.
func field(webhook string) string { return "webhook " + webhook }

func sealTarget(ctx context.Context, s Sealer, user, webhook string, t target) ([]byte, error) {
	b, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	return s.Seal(ctx, user, field(webhook), b)
}

func openTarget(ctx context.Context, s Sealer, w Webhook) (t target, err error) {
	b, err := s.Open(ctx, w.User, field(w.ID), w.Sealed)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	return t, err
}

// maxURL is more than any receiver needs.
const maxURL = 2000

// CheckURL says what is wrong with an address. Where it leads is not looked at:
// that is decided anew each time it is dialled.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	msg := ""
	switch {
	case len(text) > maxURL:
		msg = "must have at most " + strconv.Itoa(maxURL) + " characters"
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.Opaque != "":
		msg = "must be an http or https URL such as https://example.org/hook"
	case u.User != nil:
		msg = "must not contain a user name or password; deliveries are signed"
	case u.Fragment != "":
		msg = "must not contain a fragment (#); it is never sent"
	case !portOK(u.Port()):
		msg = "the port must be a number from 1 to 65535"
	}
	if msg != "" {
		return &InvalidError{Field: "url", Msg: msg}
	}
	return nil
}

func portOK(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

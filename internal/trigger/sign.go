package trigger

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// hubSigned checks a signature of the body in one of the headers: hexadecimal,
// with the name of the hash before it or without. SHA-1 is not good enough.
func hubSigned(names ...string) func(http.Header, []byte, string) bool {
	return func(h http.Header, body []byte, secret string) bool {
		for _, name := range names {
			given, err := hex.DecodeString(strings.TrimPrefix(h.Get(name), "sha256="))
			if err != nil || len(given) != sha256.Size {
				continue
			}
			mac := hmac.New(sha256.New, []byte(secret))
			mac.Write(body)
			return hmac.Equal(given, mac.Sum(nil))
		}
		return false
	}
}

// labSigned accepts GitLab's signature, or the secret itself, which is all that
// older versions send.
func labSigned(h http.Header, body []byte, secret string) bool {
	if h.Get("Webhook-Signature") != "" {
		if hook, err := standardwebhooks.NewWebhook(secret); err == nil && hook.Verify(body, h) == nil {
			return true
		}
	}
	token := h.Get("X-Gitlab-Token")
	return token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(secret)) == 1
}

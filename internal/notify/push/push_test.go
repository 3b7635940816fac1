package push

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"
)

func raw(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The example of RFC 8291, section 5 and appendix A.
var example = Subscription{
	Endpoint: "https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV",
	P256dh:   "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
	Auth:     "BTBZMqHH6r4Tts7J_aSIgg",
}

func TestTheExampleOfTheStandard(t *testing.T) {
	t.Parallel()
	own, err := ecdh.P256().NewPrivateKey(raw(t, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := seal(example, []byte("When I grow up, I want to be a watermelon"), own, raw(t, "DGv6ra1nlYgDCS1FRnbzlw"))
	if err != nil {
		t.Fatal(err)
	}
	want := "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	if !bytes.Equal(got, raw(t, want)) {
		t.Errorf("the message is\n%s, want\n%s", base64.RawURLEncoding.EncodeToString(got), want)
	}
}

func TestTheTokenNamesTheServiceAndIsSigned(t *testing.T) {
	t.Parallel()
	k, err := NewKeys([]byte("a seed"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := NewKeys([]byte("a seed")); err != nil || again.Public() != k.Public() {
		t.Errorf("the same seed gives another key: %v", err)
	}
	now := time.Unix(1_700_000_000, 0)
	req, err := k.Request(context.Background(), example, Message{Text: []byte("x"), Topic: "c1", Keep: time.Hour, Urgent: true, Subject: "mailto:ops@example.org"}, now)
	if err != nil {
		t.Fatal(err)
	}
	h := req.Header
	if h.Get("TTL") != "3600" || h.Get("Urgency") != "high" || len(h.Get("Topic")) != 32 || h.Get("Content-Encoding") != "aes128gcm" {
		t.Errorf("headers: %v", h)
	}
	token, key, ok := strings.Cut(strings.TrimPrefix(h.Get("Authorization"), "vapid t="), ", k=")
	if !ok || key != k.Public() {
		t.Fatalf("authorization: %s", h.Get("Authorization"))
	}
	parts := strings.Split(token, ".")
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), raw(t, key))
	if err != nil || len(parts) != 3 {
		t.Fatal(parts, err)
	}
	sum, signature := sha256.Sum256([]byte(parts[0]+"."+parts[1])), raw(t, parts[2])
	if !ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		t.Error("the signature is wrong")
	}
	var claims map[string]any
	if err := json.Unmarshal(raw(t, parts[1]), &claims); err != nil {
		t.Fatal(err)
	}
	if claims["aud"] != "https://push.example.net" || claims["sub"] != "mailto:ops@example.org" || claims["exp"] != float64(now.Add(12*time.Hour).Unix()) {
		t.Errorf("claims: %v", claims)
	}
}

func TestWrongKeysOfABrowserAreNamed(t *testing.T) {
	t.Parallel()
	for field, s := range map[string]Subscription{
		"":       {P256dh: example.P256dh + "=", Auth: example.Auth + "=="},
		"p256dh": {P256dh: "AAAA", Auth: example.Auth},
		"auth":   {P256dh: example.P256dh, Auth: "AAAA"},
	} {
		if got, err := s.CheckKeys(); got != field || (err == nil) != (field == "") {
			t.Errorf("the wrong field is %q (%v), want %q", got, err, field)
		}
	}
}

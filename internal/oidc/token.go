package oidc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
)

// maxToken is the maximum size of an ID token. Typical tokens have a few kilobytes.
const maxToken = 64 << 10

// claims are the claims that we use.
type claims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Audience  texts    `json:"aud"`
	Party     string   `json:"azp"`
	Expires   *float64 `json:"exp"`
	IssuedAt  *float64 `json:"iat"`
	NotBefore *float64 `json:"nbf"`
	Nonce     string   `json:"nonce"`

	Username      string `json:"preferred_username"`
	Email         string `json:"email"`
	EmailVerified truth  `json:"email_verified"`
	Groups        texts  `json:"groups"`
}

// texts is a claim that is a string or a list of strings. Other types are ignored.
type texts []string

func (t *texts) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil && !bytes.Equal(b, []byte("null")) {
		*t = texts{one}
		return nil
	}
	var many []string
	if json.Unmarshal(b, &many) == nil {
		*t = many
	}
	return nil
}

// truth is a boolean claim, which some providers send as a string.
type truth bool

func (t *truth) UnmarshalJSON(b []byte) error {
	*t = string(b) == "true" || string(b) == `"true"`
	return nil
}

// verify checks the signature and the claims of an ID token, and that it was issued for this login.
func (s *SignOn) verify(ctx context.Context, p *provider, raw, nonce string) (c claims, err error) {
	if err := s.verified(ctx, p, raw, &c); err != nil {
		return c, err
	}
	now := s.config.Now()
	switch {
	case c.Issuer != p.Issuer:
		return c, errors.New("ID token has the wrong issuer")
	case c.Subject == "" || len(c.Subject) > 255:
		return c, errors.New("ID token has no valid subject")
	case !slices.Contains(c.Audience, s.config.ClientID):
		return c, errors.New("ID token is for another client")
	case c.Party != "" && c.Party != s.config.ClientID, c.Party == "" && len(c.Audience) > 1:
		return c, errors.New("ID token was issued to another client")
	case c.Expires == nil || !now.Before(moment(*c.Expires).Add(skew)):
		return c, errors.New("ID token expired")
	case c.NotBefore != nil && now.Add(skew).Before(moment(*c.NotBefore)), c.IssuedAt != nil && now.Add(skew).Before(moment(*c.IssuedAt)):
		return c, errors.New("ID token issued in the future; check the server clock")
	case nonce == "" || !same(c.Nonce, nonce):
		return c, errors.New("ID token belongs to another login")
	}
	return c, nil
}

func moment(seconds float64) time.Time {
	const end = 1 << 40 // far below overflow
	return time.Unix(int64(max(-end, min(end, seconds))), 0)
}

// verified returns the claims of a token with a valid signature in an algorithm that the provider announces. The
// library fetches the keys again if none matches, because keys are rotated.
func (s *SignOn) verified(ctx context.Context, p *provider, raw string, into any) error {
	if raw == "" || len(raw) > maxToken {
		return errors.New("ID token missing")
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	late := func() time.Time { return s.config.Now().Add(-skew) }
	token, err := goidc.NewVerifier(p.Issuer, p.keys, &goidc.Config{ClientID: s.config.ClientID, SupportedSigningAlgs: p.algorithms, Now: late}).Verify(ctx, raw)
	if err != nil {
		return err
	}
	return token.Claims(into)
}

// lacks reports whether claims that we need may be available from the userinfo endpoint.
func (s *SignOn) lacks(c claims) bool {
	return c.Username == "" && c.Email == "" || len(s.config.Domains) > 0 && c.Email == "" || s.config.AdminGroup != "" && c.Groups == nil
}

// add adds missing claims. The e-mail address and its verification belong together.
func (c *claims) add(more claims) {
	if c.Username == "" {
		c.Username = more.Username
	}
	if c.Email == "" {
		c.Email, c.EmailVerified = more.Email, more.EmailVerified
	}
	if c.Groups == nil {
		c.Groups = more.Groups
	}
}

// maxEmail is the maximum length of an e-mail address in bytes.
const maxEmail = 254

// judge decides whether the user may log in, and with which rights.
func (s *SignOn) judge(c claims) (Person, error) {
	if len(s.config.Domains) > 0 {
		at := strings.LastIndexByte(c.Email, '@')
		switch {
		case at < 1 || !bool(c.EmailVerified):
			return Person{}, ErrUnverified
		case !slices.Contains(s.config.Domains, strings.ToLower(c.Email[at+1:])):
			return Person{}, ErrForeign
		}
	}
	p := Person{Issuer: c.Issuer, Subject: c.Subject, Name: c.Username}
	if len(c.Email) <= maxEmail {
		p.Email, p.EmailVerified = c.Email, bool(c.EmailVerified)
	}
	if p.Name == "" {
		p.Name = c.Email
	}
	if len(p.Name) > 255 {
		p.Name = p.Name[:255]
	}
	if s.config.AdminGroup != "" {
		admin := slices.Contains(c.Groups, s.config.AdminGroup)
		p.Admin = &admin
	}
	return p, nil
}

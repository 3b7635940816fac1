package oidc

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxToken bounds an ID token; they have a few kilobytes.
const maxToken = 64 << 10

// claims are what a provider says of a person, as far as we use it.
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

// texts is a claim that is one text or a list of them. What is something else says nothing.
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

// truth is a boolean claim, which some providers write as a text.
type truth bool

func (t *truth) UnmarshalJSON(b []byte) error {
	*t = string(b) == "true" || string(b) == `"true"`
	return nil
}

// verify reads an ID token whose signature and claims are good, and which was made for this sign-on.
func (s *SignOn) verify(ctx context.Context, p *provider, raw, nonce string) (c claims, err error) {
	payload, err := s.verified(ctx, p, raw)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(payload, &c); err != nil {
		return c, errors.New("its claims cannot be read")
	}
	now := s.config.Now()
	switch {
	case c.Issuer != s.config.Issuer:
		return c, errors.New("it is another issuer's")
	case c.Subject == "" || len(c.Subject) > 255:
		return c, errors.New("it does not say whom it is about")
	case !slices.Contains(c.Audience, s.config.ClientID):
		return c, errors.New("it was made for somebody else")
	case c.Party != "" && c.Party != s.config.ClientID, c.Party == "" && len(c.Audience) > 1:
		return c, errors.New("it was given to somebody else")
	case c.Expires == nil || !now.Before(moment(*c.Expires).Add(skew)):
		return c, errors.New("it has expired")
	case c.NotBefore != nil && now.Add(skew).Before(moment(*c.NotBefore)), c.IssuedAt != nil && now.Add(skew).Before(moment(*c.IssuedAt)):
		return c, errors.New("it is of the future; compare the clocks")
	case nonce == "" || !same(c.Nonce, nonce):
		return c, errors.New("it was made for another sign-on")
	}
	return c, nil
}

func moment(seconds float64) time.Time {
	const end = 1 << 40 // far from all overflows
	return time.Unix(int64(max(-end, min(end, seconds))), 0)
}

// verified is what a signed token says, if the provider signed it. Keys change: when none fits, they are asked for anew.
func (s *SignOn) verified(ctx context.Context, p *provider, raw string) ([]byte, error) {
	if raw == "" || len(raw) > maxToken {
		return nil, errors.New("there is none")
	}
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return nil, errors.New("it is no signed token")
	}
	var header struct {
		Algorithm string          `json:"alg"`
		KeyID     string          `json:"kid"`
		Critical  json.RawMessage `json:"crit"`
	}
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		if decoded[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return nil, errors.New("it is no signed token")
		}
	}
	if err := json.Unmarshal(decoded[0], &header); err != nil {
		return nil, errors.New("its header cannot be read")
	}
	if !slices.Contains(p.algorithms, header.Algorithm) || header.Critical != nil {
		return nil, errors.New("it is signed in a way that the provider does not announce, or that is not known here")
	}
	signed, algorithm := []byte(parts[0]+"."+parts[1]), algorithms[header.Algorithm]
	good := func(k publicKey) bool {
		return k.fits(header.Algorithm, header.KeyID) && algorithm.verify(k.key, signed, decoded[2])
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.keys, good) {
		return decoded[1], nil
	}
	keys, err := s.fetchKeys(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("%w: keys: %w", ErrUnavailable, err)
	}
	if p.keys = keys; !slices.ContainsFunc(p.keys, good) {
		return nil, errors.New("its signature is not the provider's")
	}
	return decoded[1], nil
}

// lacks says whether something is missing that we need and the provider may tell elsewhere.
func (s *SignOn) lacks(c claims) bool {
	return c.Username == "" && c.Email == "" || len(s.config.Domains) > 0 && c.Email == "" || s.config.AdminGroup != "" && c.Groups == nil
}

// add takes over what is missing. An address and whether it is verified belong together.
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

// judge decides whether the person may come in, and as what.
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

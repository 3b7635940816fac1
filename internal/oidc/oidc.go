// Package oidc lets people in whom an identity provider vouches for: OpenID Connect with the authorization code flow
// and PKCE.
//
// A sign-on begins at our start page, leads to the provider and comes back with a code, which is exchanged for an ID
// token behind the browser's back. What ties the end to its beginning (state, nonce, PKCE verifier) travels in a
// sealed cookie of the browser, so that strangers cannot make the server remember anything and a restart interrupts
// nobody. The provider's tokens are read once and kept nowhere.
package oidc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// Refusals. What else goes wrong is the provider's answer being wrong, and is nobody's business but the log's.
var (
	// ErrUnavailable is a provider that cannot be asked right now.
	ErrUnavailable = errors.New("cannot reach the identity provider")
	// ErrStale is an end without its beginning: another browser's, an old one, or one that was ended before.
	ErrStale = errors.New("this login was not started in this browser, or has expired")
	// ErrDenied is the person, or the provider, saying no.
	ErrDenied = errors.New("the identity provider refused the login")
	// ErrUnverified is an e-mail address that the provider does not vouch for, where one is needed.
	ErrUnverified = errors.New("the identity provider did not verify the user's e-mail address")
	// ErrForeign is an e-mail address of a domain that is not allowed.
	ErrForeign = errors.New("the domain of the user's e-mail address is not allowed")
)

const (
	// FlowLife is how long a person may take at the provider.
	FlowLife = 10 * time.Minute
	// skew is how far the provider's clock may be from ours.
	skew = 2 * time.Minute
)

// Config says who is asked and who may come in.
type Config struct {
	Issuer, ClientID string
	// ClientSecret is empty for a public client.
	ClientSecret string
	// Scopes are asked for beside openid. Default: profile and email.
	Scopes []string
	// Domains are those that a verified e-mail address must have; none is any, and none is needed.
	Domains []string
	// AdminGroup is the group whose members are administrators; "" leaves that to us.
	AdminGroup string
	// Name is what people call the provider.
	Name string
	// Key seals what browsers carry.
	Key    [32]byte
	Client *http.Client
	Now    func() time.Time // time.Now
}

// Person is whom the provider vouches for.
type Person struct {
	Issuer, Subject string
	// Name is what the person is called there; it may be anything.
	Name string
	// Admin is nil if there is no group of administrators.
	Admin *bool
	// Email is the person's address, "" if the provider names none, and EmailVerified
	// whether the provider says that it is theirs.
	Email         string
	EmailVerified bool
}

// SignOn is one identity provider. Its methods may be called concurrently.
type SignOn struct {
	config Config
	// turn lets one at a time find out about the provider.
	turn   chan struct{}
	known  *provider
	asked  time.Time
	failed error
}

// New checks the configuration. It asks nobody: a provider that is down keeps nothing from starting.
func New(c Config) (*SignOn, error) {
	u, err := url.Parse(c.Issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the issuer must be a URL such as https://id.example.org, without user, query and fragment")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return nil, errors.New("the issuer must be an https URL; http is only allowed on loopback")
	case c.ClientID == "":
		return nil, errors.New("the client ID is missing")
	}
	c.Domains = slices.Clone(c.Domains)
	for i, d := range c.Domains {
		c.Domains[i] = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(d), "@"))
		if c.Domains[i] == "" || strings.ContainsAny(c.Domains[i], "@/ *") {
			return nil, fmt.Errorf("%q is not an e-mail domain such as example.org", d)
		}
	}
	if len(c.Scopes) == 0 {
		c.Scopes = []string{"profile", "email"}
	}
	if !slices.Contains(c.Scopes, "openid") {
		c.Scopes = append([]string{"openid"}, c.Scopes...)
	}
	if c.Name == "" {
		c.Name = u.Hostname()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Client != nil {
		own := *c.Client
		own.Transport = bounded{cmp.Or(own.Transport, http.DefaultTransport)}
		c.Client = &own
	}
	return &SignOn{config: c, turn: make(chan struct{}, 1)}, nil
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Name is what people call the provider.
func (s *SignOn) Name() string { return s.config.Name }

// Begin is where to send the browser, and what it has to bring back with it, for FlowLife. redirect is our address to
// which the provider sends the browser back; next is for Finish to give back.
func (s *SignOn) Begin(ctx context.Context, redirect, next string) (address, flow string, err error) {
	p, err := s.provider(ctx)
	if err != nil {
		return "", "", err
	}
	f := journey{State: random(), Nonce: random(), Verifier: oauth2.GenerateVerifier(), Redirect: redirect, Next: next, Until: s.config.Now().Add(FlowLife).Unix()}
	o := p.oauth
	o.RedirectURL = redirect
	address = o.AuthCodeURL(f.State, oauth2.SetAuthURLParam("nonce", f.Nonce), oauth2.S256ChallengeOption(f.Verifier))
	flow, err = s.seal(f)
	return address, flow, err
}

// Began says whether an answer of the provider's belongs to what Begin gave to the browser. A browser may have begun
// more than once, in several tabs.
func (s *SignOn) Began(flow string, answer url.Values) bool {
	f, err := s.open(flow)
	return err == nil && same(f.State, answer.Get("state"))
}

// Finish finds out who came back, from the provider's answer in the address and from what Begin gave to the browser.
// Where to go next is told also when the person is not let in, for another try, unless it is ErrStale.
func (s *SignOn) Finish(ctx context.Context, flow string, answer url.Values) (p Person, next string, err error) {
	f, err := s.open(flow)
	if err != nil || !same(f.State, answer.Get("state")) {
		return Person{}, "", ErrStale
	}
	who, err := s.finish(ctx, f, answer)
	return who, f.Next, err
}

func (s *SignOn) finish(ctx context.Context, f journey, answer url.Values) (Person, error) {
	p, err := s.provider(ctx)
	if err != nil {
		return Person{}, err
	}
	// The provider says who it is, so that no other one's answer is taken for its own.
	if iss := answer.Get("iss"); iss != p.Issuer && (iss != "" || p.names) {
		return Person{}, errors.New("the issuer of the response is missing or wrong")
	}
	if code := answer.Get("error"); code != "" {
		return Person{}, fmt.Errorf("%w: %s", ErrDenied, printable(code))
	}
	o := p.oauth
	o.RedirectURL = f.Redirect
	token, err := o.Exchange(context.WithValue(ctx, oauth2.HTTPClient, s.config.Client), answer.Get("code"), oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return Person{}, exchangeError(err)
	}
	raw, _ := token.Extra("id_token").(string)
	c, err := s.verify(ctx, p, raw, f.Nonce)
	if err != nil {
		return Person{}, fmt.Errorf("single sign-on refused: %w", err)
	}
	if s.lacks(c) && p.UserInfo != "" {
		more, err := s.userInfo(ctx, p, token.AccessToken)
		if err != nil {
			return Person{}, err
		}
		if more.Subject != c.Subject {
			return Person{}, errors.New("the subjects of userinfo and ID token differ")
		}
		c.add(more)
	}
	return s.judge(c)
}

// exchangeError keeps the provider's code and leaves out what else it answered, which may be anything.
func exchangeError(err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return fmt.Errorf("the provider rejected the authorization code: %s (status %d)", printable(refused.ErrorCode), refused.Response.StatusCode)
}

// printable is a word of the provider's that may stand in a log.
func printable(word string) string {
	if word == "" || len(word) > 64 || strings.ContainsFunc(word, func(r rune) bool { return r < '!' || r > '~' }) {
		return "no code"
	}
	return word
}

// Package oidc implements single sign-on with OpenID Connect: the authorization code flow with PKCE.
//
// A login starts at our start page, continues at the provider and returns with a code, which the server exchanges
// for an ID token. The state that connects the two (state, nonce, PKCE verifier) is in a sealed cookie, so requests
// without a login cannot fill the server's memory, and logins survive a restart. The provider's tokens are read once
// and never stored.
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

// Errors that the user is told. Other errors are wrong responses of the provider and are only logged.
var (
	// ErrUnavailable means that the provider cannot be reached.
	ErrUnavailable = errors.New("cannot reach the identity provider")
	// ErrStale means that the login was started in another browser, has expired or was completed before.
	ErrStale = errors.New("this login was not started in this browser, or has expired")
	// ErrDenied means that the user or the provider refused the login.
	ErrDenied = errors.New("the identity provider refused the login")
	// ErrUnverified means that a verified e-mail address is required and the provider has not
	// verified it.
	ErrUnverified = errors.New("the identity provider did not verify the user's e-mail address")
	// ErrForeign means that the domain of the e-mail address is not allowed.
	ErrForeign = errors.New("the domain of the user's e-mail address is not allowed")
)

const (
	// FlowLife is how long a login may take.
	FlowLife = 10 * time.Minute
	// skew is the tolerated difference between the provider's clock and ours.
	skew = 2 * time.Minute
)

// Config is the provider and the rules for who may log in.
type Config struct {
	Issuer, ClientID string
	// ClientSecret is empty for a public client.
	ClientSecret string
	// Scopes are requested in addition to openid. Default: profile and email.
	Scopes []string
	// Domains are the allowed domains of the verified e-mail address. If empty, any address is
	// allowed, and none is needed.
	Domains []string
	// AdminGroup is the group whose members are administrators. If "", the provider does
	// not decide this.
	AdminGroup string
	// Name is the display name of the provider.
	Name string
	// Key seals the cookies.
	Key    [32]byte
	Client *http.Client
	Now    func() time.Time // time.Now
}

// Person is an authenticated user.
type Person struct {
	Issuer, Subject string
	// Name is what the person is called there; it may be anything.
	Name string
	// Admin is nil if no admin group is configured.
	Admin *bool
	// Email is the e-mail address, or "" if the provider sends none. EmailVerified is
	// whether the provider has verified it.
	Email         string
	EmailVerified bool
}

// SignOn is one identity provider. Its methods may be called concurrently.
type SignOn struct {
	config Config
	// turn allows one discovery at a time.
	turn   chan struct{}
	known  *provider
	asked  time.Time
	failed error
}

// CheckIssuer checks the flag --oidc-issuer, which may be "".
func CheckIssuer(issuer string) error {
	if _, err := checkIssuer(issuer); err != nil && issuer != "" {
		return fmt.Errorf("--oidc-issuer: %w", err)
	}
	return nil
}

func checkIssuer(issuer string) (*url.URL, error) {
	u, err := url.Parse(issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the issuer must be a URL such as https://id.example.org, without user, query and fragment")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return nil, errors.New("the issuer must be an https URL; http is only allowed on loopback")
	}
	return u, nil
}

// New checks the configuration. It sends no request, so the server starts even if the provider is
// down.
func New(c Config) (*SignOn, error) {
	u, err := checkIssuer(c.Issuer)
	if err != nil {
		return nil, err
	}
	if c.ClientID == "" {
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

// Name returns the display name of the provider.
func (s *SignOn) Name() string { return s.config.Name }

// Begin starts a login. It returns the URL for the browser and the state that the browser must return within
// FlowLife. redirect is our URL to which the provider sends the browser back; Finish returns next.
func (s *SignOn) Begin(ctx context.Context, redirect, next string) (address, flow string, err error) {
	p, err := s.provider(ctx)
	if err != nil {
		return "", "", err
	}
	f := loginState{State: random(), Nonce: random(), Verifier: oauth2.GenerateVerifier(), Redirect: redirect, Next: next, Until: s.config.Now().Add(FlowLife).Unix()}
	o := p.oauth
	o.RedirectURL = redirect
	address = o.AuthCodeURL(f.State, oauth2.SetAuthURLParam("nonce", f.Nonce), oauth2.S256ChallengeOption(f.Verifier))
	flow, err = s.seal(f)
	return address, flow, err
}

// Began reports whether a response of the provider belongs to a state that Begin returned. A browser may have
// started several logins, in several tabs.
func (s *SignOn) Began(flow string, answer url.Values) bool {
	f, err := s.open(flow)
	return err == nil && same(f.State, answer.Get("state"))
}

// Finish authenticates the user from the provider's response and the state that Begin returned. Except for ErrStale,
// it returns next also with an error, for another attempt.
func (s *SignOn) Finish(ctx context.Context, flow string, answer url.Values) (p Person, next string, err error) {
	f, err := s.open(flow)
	if err != nil || !same(f.State, answer.Get("state")) {
		return Person{}, "", ErrStale
	}
	who, err := s.finish(ctx, f, answer)
	return who, f.Next, err
}

func (s *SignOn) finish(ctx context.Context, f loginState, answer url.Values) (Person, error) {
	p, err := s.provider(ctx)
	if err != nil {
		return Person{}, err
	}
	// Checking the issuer prevents mix-up attacks with the response of another provider.
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

// exchangeError keeps the provider's error code and drops the rest of its response, which can contain
// anything.
func exchangeError(err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return fmt.Errorf("the provider rejected the authorization code: %s (status %d)", printable(refused.ErrorCode), refused.Response.StatusCode)
}

// printable returns text from the provider in a form that is safe to log.
func printable(word string) string {
	if word == "" || len(word) > 64 || strings.ContainsFunc(word, func(r rune) bool { return r < '!' || r > '~' }) {
		return "no code"
	}
	return word
}

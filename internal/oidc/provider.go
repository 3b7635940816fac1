package oidc

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	// knownFor is how long the provider's metadata is cached.
	knownFor = time.Hour
	// failedFor is the minimum time between attempts to reach a provider that is down.
	failedFor = 2 * time.Second
	// askFor is the timeout of a request.
	askFor = 10 * time.Second
	// maxAnswer is the maximum size of a response.
	maxAnswer = 1 << 20
)

// metadata is the provider's discovery document.
type metadata struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	UserInfo      string   `json:"userinfo_endpoint"`
	Keys          string   `json:"jwks_uri"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
	AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
	NamesItself   bool     `json:"authorization_response_iss_parameter_supported"`
}

// provider is a provider after discovery.
type provider struct {
	metadata
	oauth oauth2.Config
	// names is true if its responses contain the issuer.
	names bool
	// algorithms are the signature algorithms that the provider uses and we support.
	algorithms []string
	keys       goidc.KeySet
}

// known are the accepted signature algorithms. "none" and shared-secret algorithms are not accepted.
var known = []string{goidc.RS256, goidc.RS384, goidc.RS512, goidc.PS256, goidc.PS384, goidc.PS512, goidc.ES256, goidc.ES384, goidc.ES512, goidc.EdDSA}

// provider returns the provider, and runs discovery if the cached metadata is missing or old. If the provider
// cannot be reached, old metadata is used.
func (s *SignOn) provider(ctx context.Context) (*provider, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
	age := s.config.Now().Sub(s.asked)
	switch {
	case s.known != nil && age < knownFor:
		return s.known, nil
	case s.failed != nil && age < failedFor:
		return nil, s.failed
	}
	// The caller may go away, but the result is cached for all callers.
	p, err := s.discover(context.WithoutCancel(ctx))
	s.asked = s.config.Now()
	switch {
	case err == nil:
		s.known, s.failed = p, nil
	case s.known == nil:
		s.failed = fmt.Errorf("%w: %w", ErrUnavailable, err)
		return nil, s.failed
	}
	return s.known, nil
}

// Check runs discovery, to find a wrong configuration early.
func (s *SignOn) Check(ctx context.Context) error {
	_, err := s.discover(ctx)
	return err
}

func (s *SignOn) discover(ctx context.Context) (*provider, error) {
	var m metadata
	if err := s.ask(ctx, strings.TrimSuffix(s.config.Issuer, "/")+"/.well-known/openid-configuration", "", &m); err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	// A missing or extra trailing slash is a common mistake, and never means another
	// provider.
	if strings.TrimSuffix(m.Issuer, "/") != strings.TrimSuffix(s.config.Issuer, "/") {
		return nil, fmt.Errorf("discovery: the provider's issuer is %q, not %q; set the issuer exactly as the provider reports it", m.Issuer, s.config.Issuer)
	}
	for name, address := range map[string]string{"authorization_endpoint": m.Authorization, "token_endpoint": m.Token, "jwks_uri": m.Keys, "userinfo_endpoint": m.UserInfo} {
		u, err := url.Parse(address)
		if name == "userinfo_endpoint" && address == "" {
			continue
		}
		if err != nil || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
			return nil, fmt.Errorf("discovery: %s is not an https URL", name)
		}
	}
	p := &provider{metadata: m, names: m.NamesItself}
	for _, a := range m.Algorithms {
		if slices.Contains(known, a) {
			p.algorithms = append(p.algorithms, a)
		}
	}
	if len(m.Algorithms) == 0 {
		p.algorithms = []string{goidc.RS256} // required by the specification
	}
	// Keys are fetched when they are needed, independent of the current request.
	p.keys = goidc.NewRemoteKeySet(goidc.ClientContext(context.WithoutCancel(ctx), s.config.Client), m.Keys)
	p.oauth = oauth2.Config{ClientID: s.config.ClientID, ClientSecret: s.config.ClientSecret, Scopes: s.config.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: m.Authorization, TokenURL: m.Token, AuthStyle: s.authStyle(m.AuthMethods)}}
	return p, nil
}

// authStyle returns how the client authenticates. It must be known before the code is exchanged, because a failed
// attempt uses up the code.
func (s *SignOn) authStyle(methods []string) oauth2.AuthStyle {
	if s.config.ClientSecret == "" || len(methods) > 0 && !slices.Contains(methods, "client_secret_basic") {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// userInfo requests the claims that are not in the ID token.
func (s *SignOn) userInfo(ctx context.Context, p *provider, accessToken string) (claims, error) {
	var c claims
	if err := s.ask(ctx, p.UserInfo, accessToken, &c); err != nil {
		return c, fmt.Errorf("%w: userinfo: %w", ErrUnavailable, err)
	}
	return c, nil
}

// ask requests JSON from the provider.
func (s *SignOn) ask(ctx context.Context, address, accessToken string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if accessToken != "" {
		req.Header.Set("Authorization", "Bearer "+accessToken)
	}
	res, err := s.config.Client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the provider responded with status %d", res.StatusCode)
	}
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		return fmt.Errorf("the provider did not respond with valid JSON: %w", err)
	}
	return nil
}

// bounded limits the size of all responses to maxAnswer; the library that fetches keys has no limit.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxAnswer), res.Body}
	}
	return res, err
}

package page

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/oidc"
)

const (
	signOnPath   = "/login/oidc"
	callbackPath = signOnPath + "/callback"
	// FlowCookie carries a sign-on from its beginning to its end. Unlike the login it is sent when another site leads
	// here, which is how the provider sends the browser back; it opens nothing.
	FlowCookie = "deckhand_sign_on"
	// MaxFlows is how many sign-ons a browser may have begun at a time, in tabs of its own. Each has a cookie.
	MaxFlows = 3

	aboutSignOn   = "Redirects to the identity provider and, after the login, to the path in next."
	aboutCallback = "The identity provider redirects the browser here. On an error the browser is redirected to the login page, which shows the error."
)

func (d *Handlers) loginOptions(_ context.Context, _ *rest.Call, _ rest.None, _ rest.None) (api.LoginOptions, error) {
	if d.SignOn == nil {
		return api.LoginOptions{}, nil
	}
	return api.LoginOptions{OIDC: &api.LoginOIDC{Name: d.SignOn.Name(), StartPath: signOnPath}}, nil
}

type signOnQuery struct {
	Next string `query:"next" maxLength:"1000" doc:"Path on this server to open after the login. Default: the home page."`
}

func describeRedirect(_ huma.Registry, o *huma.Operation) {
	o.Responses["303"] = &huma.Response{Description: "Redirect", Headers: map[string]*huma.Param{"Location": {Schema: &huma.Schema{Type: huma.TypeString}}}}
}

func describeCallback(o *huma.Operation) {
	rest.DescribePage("text/html")(o)
	describeRedirect(nil, o)
}

// startSignOn sends the browser to the identity provider.
func (d *Handlers) startSignOn(w http.ResponseWriter, r *http.Request, _ *rest.Call, q signOnQuery) error {
	if d.SignOn == nil {
		return noSignOn()
	}
	next := LocalPath(q.Next)
	address, flow, err := d.SignOn.Begin(r.Context(), d.Guard.OwnAddress(r)+callbackPath, next)
	if err != nil {
		return d.signOnFailed(w, r, next, err)
	}
	d.putFlow(w, r, d.freeFlow(r), flow, oidc.FlowLife)
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// finishSignOn logs the browser in after the provider confirmed the person. The login cookie is same-site, and
// browsers do not send it after a redirect from another site: so a page of this server redirects again.
func (d *Handlers) finishSignOn(w http.ResponseWriter, r *http.Request, c *rest.Call) error {
	if d.SignOn == nil {
		return noSignOn()
	}
	flow := d.takeFlow(w, r)
	person, next, err := d.SignOn.Finish(r.Context(), flow, r.URL.Query())
	if err != nil {
		return d.signOnFailed(w, r, next, err)
	}
	cookie, who, err := d.Gate.SignOn(r.Context(), access.Vouched{Issuer: person.Issuer, Subject: person.Subject, Name: person.Name, Admin: person.Admin,
		Email: access.Email{Address: person.Email, Verified: person.EmailVerified}})
	if err != nil {
		return d.signOnFailed(w, r, next, err)
	}
	d.Logger.InfoContext(r.Context(), "signed on", "user", who.User, "admin", who.Admin)
	c.Header = w.Header()
	d.Guard.GiveCookie(c, cookie, access.SignOnLife, d.Guard.Origin != "")
	return writePage(w, http.StatusOK, render("signon.html", map[string]any{"Root": rest.RootOf(r), "To": rest.RootOf(r) + strings.TrimPrefix(LocalPath(next), "/")}))
}

func noSignOn() error {
	return rest.Fail(http.StatusNotFound, api.CodeNotFound, "Single sign-on is not configured. The operator can set it up with --oidc-issuer.")
}

// signOnFailed leads to the login page, which has words for the person and knows where another try is to lead. The
// log has those for the operator.
func (d *Handlers) signOnFailed(w http.ResponseWriter, r *http.Request, next string, err error) error {
	why := "failed"
	for code, cause := range map[string]error{"unavailable": oidc.ErrUnavailable, "expired": oidc.ErrStale, "denied": oidc.ErrDenied,
		"unverified": oidc.ErrUnverified, "foreign": oidc.ErrForeign, "disabled": access.ErrUserDisabled} {
		if errors.Is(err, cause) {
			why = code
		}
	}
	d.Logger.WarnContext(r.Context(), "single sign-on failed", "request", w.Header().Get("X-Request-Id"), "error", err)
	if a := d.Gate.AllowFailure(r.RemoteAddr); !a.OK {
		if !rest.WantsPage(r) {
			return rest.TooMany(a, "Too many failed logins.")
		}
		why = "too_many"
	}
	to := url.Values{"sign_on": {why}}
	if next = LocalPath(next); next != "/" {
		to.Set("next", next)
	}
	w.Header().Set("Location", rest.RootOf(r)+"login?"+to.Encode())
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// putFlow gives the browser what it must bring back, or takes it away.
func (d *Handlers) putFlow(w http.ResponseWriter, r *http.Request, name, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: int(life.Seconds()), HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: d.Guard.Secure(r)})
}

// freeFlow is the cookie for one more sign-on. Where too many were begun, one of them is given up.
func (d *Handlers) freeFlow(r *http.Request) string {
	names := d.flowNames(r)
	for _, name := range names {
		if _, err := r.Cookie(name); err != nil {
			return name
		}
	}
	return names[rand.N(len(names))]
}

// takeFlow is what the browser was given for this very sign-on; "" if it has nothing of it. It is good once, and the
// other ones stay.
func (d *Handlers) takeFlow(w http.ResponseWriter, r *http.Request) string {
	answer := r.URL.Query()
	for _, name := range d.flowNames(r) {
		if c, err := r.Cookie(name); err == nil && d.SignOn.Began(c.Value, answer) {
			d.putFlow(w, r, name, "", -time.Second)
			return c.Value
		}
	}
	return ""
}

// flowNames have, where possible, the prefix that binds a cookie to this host: a neighbouring host that could set
// the cookie might log a visitor in as another user.
func (d *Handlers) flowNames(r *http.Request) []string {
	first := FlowCookie
	if d.Guard.Secure(r) {
		first = rest.OwnPrefix + FlowCookie
	}
	names := []string{first}
	for n := 2; n <= MaxFlows; n++ {
		names = append(names, first+"_"+strconv.Itoa(n))
	}
	return names
}

// pathForm is a path and a query without anything that some browser reads as another host.
var pathForm = regexp.MustCompile(`^/([A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*(\?([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?$`)

// LocalPath returns the path to go to after a login: next if it is a path of this server,
// otherwise the home page.
func LocalPath(next string) string {
	path, _, _ := strings.Cut(next, "?")
	switch first := rest.FirstPart(path); {
	case !pathForm.MatchString(next), strings.Contains(path, "//"), strings.Contains(strings.ReplaceAll(strings.ToLower(path), "%2e", "."), ".."), first == "login", first == "api":
		return "/"
	}
	return next
}

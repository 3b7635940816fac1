package git

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"deckhand/api"
	"deckhand/internal/gitprovider"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/settings"
)

const (
	aboutSeveral = "Queries all providers with a stored token in parallel, or only the selected one. " +
		"Providers that fail are named in the header X-Failed-Providers; if all fail, the first error is returned."
	aboutRepositories = "Without selected_provider, returns the first page of each provider. " + aboutSeveral
)

// Errors without a stored token. Clients know these texts.
const (
	NeedToken  = "Git provider token required. (such as GitHub)."
	NeedSearch = "Git provider token required."
	NeedTasks  = "No providers set."
)

// forgeTime is how long the providers have for an answer.
const forgeTime = 20 * time.Second

// forge is an opened provider with the user's token.
type forge struct {
	name  string
	token settings.ProviderToken
	gitprovider.Provider
}

// forges are the providers that the user stored a token for, or the selected
// one of them. If there is none, missing says so.
func (d *Handlers) forges(ctx context.Context, user, selected, missing string) ([]forge, error) {
	tokens := map[string]settings.ProviderToken{}
	err := d.Settings.Read(ctx, user, func(s *settings.Settings) {
		for name, t := range s.ProviderTokens {
			if !t.Token.IsZero() && (selected == "" || name == selected) {
				tokens[name] = t
			}
		}
	})
	if err != nil && !errors.Is(err, settings.ErrNotFound) {
		return nil, err
	}
	var out []forge
	for _, name := range gitprovider.Names() {
		if t, ok := tokens[name]; ok && d.Forge != nil {
			out = append(out, forge{name: name, token: t})
		}
	}
	if len(out) == 0 {
		return nil, rest.Fail(http.StatusUnauthorized, api.CodeGitAuthentication, missing)
	}
	return out, nil
}

// answered is what one of several providers said.
type answered[T any] struct {
	forge forge
	value T
}

// askAll asks all at the same time and returns who answered, in order. Those
// who failed are named in the answer's header and logged. It fails if all did.
func askAll[T any](ctx context.Context, d *Handlers, c *rest.Call, all []forge, ask func(ctx context.Context, f forge) (T, error)) ([]answered[T], error) {
	short, cancel := d.askTime(ctx)
	defer cancel()
	found, errs := make([]answered[T], len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for i, f := range all {
		wg.Go(func() { found[i], errs[i] = askOne(short, d, f, ask) })
	}
	wg.Wait()
	var good []answered[T]
	for i, a := range found {
		if errs[i] == nil {
			good = append(good, a)
		}
	}
	return good, d.failed(ctx, c, all, errs, len(good) == 0)
}

// askAny asks all for what one of them has, and waits for no more than it must.
func askAny[T any](ctx context.Context, d *Handlers, c *rest.Call, all []forge, ask func(ctx context.Context, f forge) (T, error)) (answered[T], error) {
	short, cancel := d.askTime(ctx)
	defer cancel()
	a, at, errs := gitprovider.First(short, len(all), func(ctx context.Context, i int) (answered[T], error) { return askOne(ctx, d, all[i], ask) })
	for i, err := range errs {
		if at >= 0 && gitprovider.ReasonOf(err) == gitprovider.NotFound { // not to have it is no failure when another does
			errs[i] = nil
		}
	}
	return a, d.failed(ctx, c, all, errs, at < 0)
}

// askTime ends when the providers had their time, or the server is closing.
func (d *Handlers) askTime(ctx context.Context) (context.Context, context.CancelFunc) {
	short, cancel := context.WithTimeout(ctx, forgeTime)
	stop := context.AfterFunc(d.Life.Closing, cancel)
	return short, func() { stop(); cancel() }
}

func askOne[T any](ctx context.Context, d *Handlers, f forge, ask func(ctx context.Context, f forge) (T, error)) (answered[T], error) {
	var err error
	if f.Provider, err = d.Forge(ctx, f.name, f.token); err != nil { // to open one may be to ask it what it is
		return answered[T]{}, err
	}
	value, err := ask(ctx, f)
	return answered[T]{forge: f, value: value}, err
}

// failed logs the providers that failed and names them in a header of the response. If all
// failed, it returns the error to respond with.
func (d *Handlers) failed(ctx context.Context, c *rest.Call, all []forge, errs []error, none bool) error {
	var names []string
	var first error
	for i, err := range errs {
		if err == nil {
			continue
		}
		if ctx.Err() != nil { // the client has disconnected
			return ctx.Err()
		}
		name := all[i].name
		names = append(names, name)
		d.Logger.WarnContext(ctx, "git provider request failed", "provider", name, "user", c.Who.User, "error", err)
		if first == nil || gitprovider.ReasonOf(first) == gitprovider.NotFound {
			first = forgeError(name, all[i].token.Host, err)
		}
	}
	if none {
		return forgeFault(first)
	}
	if len(names) > 0 {
		c.Header.Set("X-Failed-Providers", strings.Join(names, ", "))
	}
	return nil
}

// forgeError is what a provider's failure is called when time ran out first.
func forgeError(provider, host string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return gitprovider.Failure(provider, host, gitprovider.Unavailable, "")
	}
	return err
}

// forgeFault is the answer to what a provider did not do.
func forgeFault(err error) error {
	e, ok := errors.AsType[*gitprovider.Error](err)
	if !ok {
		return err
	}
	f := rest.Fail(http.StatusServiceUnavailable, api.CodeUnavailable, e.Message)
	switch e.Reason {
	case gitprovider.BadToken, gitprovider.Scope:
		f.Status, f.Code = http.StatusUnauthorized, api.CodeGitAuthentication
	case gitprovider.NotFound:
		f.Status, f.Code = http.StatusNotFound, api.CodeNotFound
	case gitprovider.RateLimited:
		f.Status, f.Code = http.StatusTooManyRequests, api.CodeRateLimited
	case gitprovider.Refused, gitprovider.Unsupported, gitprovider.Blocked:
		f.Status, f.Code = http.StatusBadRequest, api.CodeBadRequest
	}
	if e.RetryAfter > 0 {
		f.Header = http.Header{"Retry-After": {strconv.FormatInt(int64(math.Ceil(e.RetryAfter.Seconds())), 10)}}
	}
	return f
}

func (d *Handlers) gitUser(ctx context.Context, c *rest.Call, _ rest.None, _ rest.None) (api.GitUser, error) {
	all, err := d.forges(ctx, c.Who.User, "", NeedToken)
	if err != nil {
		return api.GitUser{}, err
	}
	a, err := askAny(ctx, d, c, all, func(ctx context.Context, f forge) (gitprovider.User, error) { return f.User(ctx) })
	u := a.value
	return api.GitUser{ID: u.ID, Login: u.Login, AvatarURL: u.AvatarURL, Company: rest.OrNull(u.Company), Name: rest.OrNull(u.Name), Email: rest.OrNull(u.Email)}, err
}

type providerQuery struct {
	Provider string `query:"provider" required:"true" enum:"git_provider"`
}

func (d *Handlers) gitInstallations(ctx context.Context, c *rest.Call, q providerQuery, _ rest.None) ([]string, error) {
	all, err := d.forges(ctx, c.Who.User, q.Provider, NeedToken)
	if err != nil {
		return nil, err
	}
	a, err := askAny(ctx, d, c, all, func(ctx context.Context, f forge) ([]string, error) { return f.Installations(ctx) })
	return rest.OrEmpty(a.value), err
}

type repositoriesQuery struct {
	Sort         string `query:"sort" default:"pushed" maxLength:"50" doc:"pushed, updated, created or full_name."`
	Provider     string `query:"selected_provider" enum:"git_provider" doc:"Query only this provider."`
	Page         int64  `query:"page" default:"1" minimum:"1" maximum:"100000" doc:"Page number at the selected provider."`
	PerPage      int64  `query:"per_page" default:"30" minimum:"1" maximum:"100"`
	Installation string `query:"installation_id" maxLength:"200" doc:"Only repositories that this app installation can access."`
}

func (d *Handlers) gitRepositories(ctx context.Context, c *rest.Call, q repositoriesQuery, _ rest.None) ([]api.GitRepository, error) {
	all, err := d.forges(ctx, c.Who.User, q.Provider, NeedToken)
	if err != nil {
		return nil, err
	}
	if q.Provider == "" {
		q.Page = 1
	}
	pages, err := askAll(ctx, d, c, all, func(ctx context.Context, f forge) (gitprovider.Repositories, error) {
		return f.Repositories(ctx, gitprovider.RepositoryQuery{Sort: q.Sort, Page: int(q.Page), PerPage: int(q.PerPage), Installation: q.Installation})
	})
	out := []api.GitRepository{}
	for _, p := range pages {
		for _, r := range p.value.Items {
			v := repositoryView(p.forge.name, r)
			if p.value.Next > 0 { // on each, for clients look at the first
				v.LinkHeader = new(nextPage(q, p.forge.name, p.value.Next))
			}
			out = append(out, v)
		}
	}
	return out, err
}

// nextPage is a Link header. Older clients find the number by a pattern that
// wants page before all else.
func nextPage(q repositoriesQuery, provider string, page int) string {
	more := url.Values{"per_page": {strconv.FormatInt(q.PerPage, 10)}, "selected_provider": {provider}, "sort": {q.Sort}}
	if q.Installation != "" {
		more.Set("installation_id", q.Installation)
	}
	return "</api/user/repositories?page=" + strconv.FormatInt(int64(page), 10) + "&" + more.Encode() + `>; rel="next"`
}

func repositoryView(provider string, r gitprovider.Repository) api.GitRepository {
	return api.GitRepository{ID: r.ID, FullName: r.Name, GitProvider: provider, IsPublic: r.Public, StargazersCount: r.Stars,
		PushedAt: moment(r.PushedAt), OwnerType: rest.OrNull(r.Owner), MainBranch: rest.OrNull(r.MainBranch)}
}

// moment is null when it is not known.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

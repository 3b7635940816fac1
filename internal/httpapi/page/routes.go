package page

import (
	"io/fs"
	"log/slog"

	"deckhand/internal/access"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/oidc"
	"deckhand/internal/settings"
)

// Routes are the pages, and how browsers log in.
func (d *Handlers) Routes() []rest.Route {
	return []rest.Route{
		rest.Op(rest.Route{Method: "GET", Path: "/api/login/options", ID: "loginOptions", Tag: rest.TagKeys, Public: true, Summary: "List login methods"}, d.loginOptions),
		rest.Op(rest.Route{Method: "POST", Path: "/api/login", ID: "login", Tag: rest.TagKeys, Public: true, Summary: "Exchange a login ticket or a key for a session cookie"}, d.login),
		rest.Op(rest.Route{Method: "POST", Path: "/api/logout", ID: "logout", Tag: rest.TagKeys, Summary: "Log out of the browser session"}, d.logout),
		rest.Raw(rest.Route{Method: "GET", Path: "/docs", ID: "docs", Tag: rest.TagPages, Summary: "Read this API reference as a web page"}, rest.DescribePage("text/html"), d.serveDocs),
		rest.Raw(rest.Route{Method: "GET", Path: "/manual/{$}", ID: "manual", Tag: rest.TagPages, Summary: "Read the manual"}, rest.DescribePage("text/html"), d.serveManual),
		rest.Raw(rest.Route{Method: "GET", Path: "/manual/{page}", ID: "manualPage", Tag: rest.TagPages, Summary: "Get a manual page"}, rest.DescribePage("text/html"), d.serveManual),
		rest.Raw(rest.Route{Method: "GET", Path: "/manual/{folder}/{page}", ID: "manualPart", Tag: rest.TagPages, Summary: "Get a manual page, picture or example file in a subfolder"}, rest.DescribePage("text/html"), d.serveManual),
		rest.Raw(rest.Route{Method: "GET", Path: "/login", ID: "loginPage", Tag: rest.TagPages, Public: true, Summary: "Show the login page"}, rest.DescribePage("text/html"), d.serveLogin),
		rest.RawOp(rest.Route{Method: "GET", Path: signOnPath, ID: "startSignOn", Tag: rest.TagPages, Public: true, Stream: true, Summary: "Start single sign-on", About: aboutSignOn}, describeRedirect, d.startSignOn),
		rest.Raw(rest.Route{Method: "GET", Path: callbackPath, ID: "finishSignOn", Tag: rest.TagPages, Public: true, Stream: true, Summary: "Complete single sign-on", About: aboutCallback}, describeCallback, d.finishSignOn),
		rest.Raw(rest.Route{Method: "GET", Path: "/assets/deckhand/{name}", ID: "asset", Tag: rest.TagPages, Public: true, Summary: "Get a stylesheet or script of the plain pages"}, rest.DescribePage("text/css"), d.serveAsset),
		rest.Raw(rest.Route{Method: "GET", Path: "/" + pageFolder + "/{name}", ID: "pageFile", Yields: true, Public: true, Tag: rest.TagPages, Summary: "Get a file of the web page"}, rest.DescribePage("text/javascript"), d.serveUI),
		rest.Raw(rest.Route{Method: "GET", Path: "/" + manifestFile, ID: "manifest", Yields: true, Public: true, Tag: rest.TagPages, Summary: "Get the manifest of the installable web app"}, rest.DescribePage("application/manifest+json"), d.serveAppFile),
		rest.Raw(rest.Route{Method: "GET", Path: "/" + workerFile, ID: "serviceWorker", Yields: true, Public: true, Tag: rest.TagPages, Summary: "Get the service worker that shows notifications"}, rest.DescribePage("text/javascript"), d.serveAppFile),
		rest.Raw(rest.Route{Method: "GET", Path: "/{$}", ID: "home", Yields: true, Public: true, Tag: rest.TagPages, Summary: "Show the home page"}, rest.DescribePage("text/html"), d.servePage),
		rest.Raw(rest.Route{Method: "GET", Path: "/conversations/{conversation_id}", ID: "conversationPage", Yields: true, Public: true, Tag: rest.TagPages, Summary: "Show a conversation"}, rest.DescribePage("text/html"), d.servePage),
		rest.Raw(rest.Route{Method: "GET", Path: "/conversations/{conversation_id}/{tab}", ID: "workspacePage", Yields: true, Public: true, Tag: rest.TagPages, Summary: "Show a tab of a conversation"}, rest.DescribePage("text/html"), d.servePage),
		rest.Raw(rest.Route{Method: "GET", Path: "/settings", ID: "settingsPage", Yields: true, Public: true, Tag: rest.TagPages, Summary: "Show the settings page"}, rest.DescribePage("text/html"), d.servePage),
		rest.Raw(rest.Route{Method: "GET", Path: "/settings/{tab}", ID: "settingsTab", Yields: true, Public: true, Tag: rest.TagPages, Summary: "Show a section of the settings page"}, rest.DescribePage("text/html"), d.servePage),
	}
}

// Config is what the pages are made of.
type Config struct {
	// Built is the web page as it was built; without index.html, or nil, it was not.
	Built fs.FS
	// SignOn is the login through an identity provider; nil if there is none.
	SignOn *oidc.SignOn
}

// Handlers serves the web page, the manual and the plain pages, and logs browsers in.
type Handlers struct {
	Config
	Version  string
	Gate     *access.Gate
	Guard    *rest.Guard
	Settings *settings.Service
	Logger   *slog.Logger
	// Frames are the sources of what the page may show in a frame.
	Frames string
	// FrontEnd is true where a legacy front end is served in place of the web page.
	FrontEnd bool
	// Docs is the documentation page.
	Docs func() []byte

	ui *site
}

// New completes d with the page as it was built.
func New(d Handlers) (*Handlers, error) {
	var err error
	d.ui, err = newPage(d.Built)
	return &d, err
}

package legacy

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
)

// These are operations that older front ends call and that have no work to do
// here. Each says so in the way its callers understand.

const (
	aboutExperiment = "Accepted for legacy clients; there are no experiments. Always returns false, which these clients treat as success."
	aboutSecurity   = "Risk analysis runs in the server and is configured in the settings. There is no analyzer API."
)

func (d *Handlers) getVSCodeURL(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (api.VSCodeURL, error) {
	_, err := d.row(ctx, c, p.ID)
	return api.VSCodeURL{}, err
}

func (d *Handlers) setExperiment(ctx context.Context, c *rest.Call, p rest.InConversation, _ api.ExperimentConfig) (bool, error) {
	_, err := d.row(ctx, c, p.ID)
	return false, err
}

// authenticate has nothing to do: the key was checked before.
func (*Handlers) authenticate(_ context.Context, _ *rest.Call, _ rest.None, _ rest.None) (api.Done, error) {
	return api.Done{Message: "User authenticated"}, nil
}

// acceptTerms does not repeat the address that clients send along to be led to next.
func (*Handlers) acceptTerms(_ context.Context, _ *rest.Call, _ rest.None, _ rest.None) (api.Done, error) {
	return api.Done{Message: "There are no terms to accept here"}, nil
}

// noModelKey answers for the keys by which a hosted service pays its users' models.
func (*Handlers) noModelKey(_ context.Context, _ *rest.Call, _ rest.None, _ rest.None) (rest.None, error) {
	return rest.None{}, rest.Fail(http.StatusNotFound, api.CodeNotFound, "This server does not issue model keys. Store your own as llm_api_key in the settings.")
}

// security makes the rows of a path for which there is no analyzer, one for each method.
func security(path, id string, serve func(w http.ResponseWriter, r *http.Request, c *rest.Call) error, methods ...string) []rest.Route {
	var out []rest.Route
	for _, m := range methods {
		out = append(out, rest.Raw(rest.Route{Method: m, Path: path, ID: id + m, Tag: rest.TagOlder, Summary: "Call the security analyzer (not supported, always 404)", About: aboutSecurity}, describeSecurity, serve))
	}
	return out
}

func describeSecurity(o *huma.Operation) {
	o.Responses["404"] = &huma.Response{Description: "Not supported", Content: rest.JSONContent(&huma.Schema{Type: huma.TypeObject, Required: []string{"detail"},
		Properties: map[string]*huma.Schema{"detail": {Type: huma.TypeString}}})}
}

func (*Handlers) noAnalyzer(http.ResponseWriter, *http.Request, *rest.Call) error {
	const msg = "Security analyzer not initialized"
	return &rest.Fault{Status: http.StatusNotFound, Code: api.CodeNotFound, Msg: msg, Body: api.NotInitialized{Detail: msg}}
}

// noAnalyzerHere tells only its owner that a conversation is there.
func (d *Handlers) noAnalyzerHere(w http.ResponseWriter, r *http.Request, c *rest.Call) error {
	if _, err := d.row(r.Context(), c, r.PathValue("conversation_id")); err != nil {
		return err
	}
	return d.noAnalyzer(w, r, c)
}

package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
)

// These are operations that older front ends call and that have no work to do
// here. Each says so in the way its callers understand.

const (
	aboutExperiment = "Accepted for legacy clients; there are no experiments. Always returns false, which these clients treat as success."
	aboutSecurity   = "Risk analysis runs in the server and is configured in the settings. There is no analyzer API."
)

func getVSCodeURL(d *Door, ctx context.Context, c *call, p one, _ none) (api.VSCodeURL, error) {
	_, err := d.row(ctx, c, p.ID)
	return api.VSCodeURL{}, err
}

func setExperiment(d *Door, ctx context.Context, c *call, p one, _ api.ExperimentConfig) (bool, error) {
	_, err := d.row(ctx, c, p.ID)
	return false, err
}

// authenticate has nothing to do: whoever gets here was let in.
func authenticate(_ *Door, _ context.Context, _ *call, _ none, _ none) (api.Done, error) {
	return api.Done{Message: "User authenticated"}, nil
}

// acceptTerms does not repeat the address that clients send along to be led to next.
func acceptTerms(_ *Door, _ context.Context, _ *call, _ none, _ none) (api.Done, error) {
	return api.Done{Message: "There are no terms to accept here"}, nil
}

// noModelKey answers for the keys by which a hosted service pays its users' models.
func noModelKey(_ *Door, _ context.Context, _ *call, _ none, _ none) (none, error) {
	return none{}, fail(http.StatusNotFound, api.CodeNotFound, "This server does not issue model keys. Store your own as llm_api_key in the settings.")
}

// security makes the rows of a path for which there is no analyzer, one for each method.
func security(path, id string, serve func(d *Door, w http.ResponseWriter, r *http.Request, c *call) error, methods ...string) []route {
	var out []route
	for _, m := range methods {
		out = append(out, raw(route{method: m, path: path, id: id + m, tag: tagOlder, summary: "Call the security analyzer (not supported, always 404)", about: aboutSecurity}, describeSecurity, serve))
	}
	return out
}

func describeSecurity(o *huma.Operation) {
	o.Responses["404"] = &huma.Response{Description: "Not supported", Content: jsonContent(&huma.Schema{Type: huma.TypeObject, Required: []string{"detail"},
		Properties: map[string]*huma.Schema{"detail": {Type: huma.TypeString}}})}
}

func noAnalyzer(*Door, http.ResponseWriter, *http.Request, *call) error {
	const msg = "Security analyzer not initialized"
	return &fault{status: http.StatusNotFound, code: api.CodeNotFound, msg: msg, body: api.NotInitialized{Detail: msg}}
}

// noAnalyzerHere tells only its owner that a conversation is there.
func noAnalyzerHere(d *Door, w http.ResponseWriter, r *http.Request, c *call) error {
	if _, err := d.row(r.Context(), c, r.PathValue("conversation_id")); err != nil {
		return err
	}
	return noAnalyzer(d, w, r, c)
}

package httpapi

import (
	"errors"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/trigger"
)

const (
	aboutArrival = "Called by git providers and authenticated by the signature instead of a key. 202: the delivery will be processed. 200: the delivery is ignored. " +
		"Without the parameter integration, the secrets of all integrations with the provider are tried."
	// maxArrival is more than what providers send about issues and comments. The
	// largest deliveries are about pushes, which are not wanted here.
	maxArrival = 5 << 20
)

type arrivalPath struct {
	Provider    string `path:"provider" maxLength:"32" doc:"github, gitlab, bitbucket, gitea or forgejo."`
	Integration string `query:"integration" maxLength:"64" doc:"ID of the integration."`
}

// receiveWebhook takes what a git provider tells. Who cannot sign it learns nothing.
func receiveWebhook(d *Door, w http.ResponseWriter, r *http.Request, _ *call, p arrivalPath) error {
	if d.Arrivals == nil || !trigger.Known(p.Provider) {
		return fail(http.StatusNotFound, api.CodeNotFound, "Not found")
	}
	body, release, err := d.receiveJSON(w, r, deliverers+stranger(r), maxArrival)
	defer release()
	if err != nil {
		return err
	}
	got, err := d.Arrivals.Receive(r.Context(), p.Provider, p.Integration, r.Header, body)
	switch {
	case errors.Is(err, trigger.ErrUnsigned):
		if a := d.Gate.AllowFailure(r.RemoteAddr); !a.OK {
			return tooMany(a, "Too many deliveries with an invalid signature.")
		}
		return unauthorized()
	case errors.Is(err, trigger.ErrUnreadable):
		return fail(http.StatusBadRequest, api.CodeBadRequest, "The signature is valid, but the body is not a delivery of this provider.")
	case err != nil:
		return err
	}
	status, said := http.StatusOK, api.WebhookReceipt{Status: "ignored", Reason: text(got.Reason)}
	switch {
	case got.Known:
		said = api.WebhookReceipt{Status: "known"}
	case got.State == trigger.Waiting:
		status, said.Status = http.StatusAccepted, "accepted"
	}
	writeJSON(w, status, said)
	return nil
}

func describeArrival(d *Door, o *huma.Operation) {
	o.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{}}}}
	schema := d.registry.Schema(reflect.TypeFor[api.WebhookReceipt](), true, "")
	o.Responses["200"] = &huma.Response{Description: "The delivery was recorded and is ignored.", Content: jsonContent(schema)}
	o.Responses["202"] = &huma.Response{Description: "The delivery was recorded and will be processed.", Content: jsonContent(schema)}
	o.Responses["401"] = &huma.Response{Description: "The signature does not match any secret.", Content: jsonContent(d.registry.Schema(reflect.TypeFor[api.Unauthorized](), true, ""))}
}

package hooks

import (
	"errors"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
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
	Provider    string `path:"provider" maxLength:"32" doc:"Name of the git provider."`
	Integration string `query:"integration" maxLength:"64" doc:"ID of the integration."`
}

// receiveWebhook takes what a git provider tells. Who cannot sign it learns nothing.
func (d *Handlers) receiveWebhook(w http.ResponseWriter, r *http.Request, _ *rest.Call, p arrivalPath) error {
	if d.Arrivals == nil || !trigger.Known(p.Provider) {
		return rest.Fail(http.StatusNotFound, api.CodeNotFound, "Not found")
	}
	body, release, err := d.Intake.ReceiveJSON(w, r, rest.Deliverers+rest.Stranger(r), maxArrival)
	defer release()
	if err != nil {
		return err
	}
	got, err := d.Arrivals.Receive(r.Context(), p.Provider, p.Integration, r.Header, body)
	switch {
	case errors.Is(err, trigger.ErrUnsigned):
		if a := d.Gate.AllowFailure(r.RemoteAddr); !a.OK {
			return rest.TooMany(a, "Too many deliveries with an invalid signature.")
		}
		return rest.Unauthorized()
	case errors.Is(err, trigger.ErrUnreadable):
		return rest.Fail(http.StatusBadRequest, api.CodeBadRequest, "The signature is valid, but the body is not a delivery of this provider.")
	case err != nil:
		return err
	}
	status, said := http.StatusOK, api.WebhookReceipt{Status: "ignored", Reason: rest.OrNull(got.Reason)}
	switch {
	case got.Known:
		said = api.WebhookReceipt{Status: "known"}
	case got.State == trigger.Waiting:
		status, said.Status = http.StatusAccepted, "accepted"
	}
	rest.WriteJSON(w, status, said)
	return nil
}

func describeArrival(r huma.Registry, o *huma.Operation) {
	o.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{}}}}
	schema := r.Schema(reflect.TypeFor[api.WebhookReceipt](), true, "")
	o.Responses["200"] = &huma.Response{Description: "The delivery was recorded and is ignored.", Content: rest.JSONContent(schema)}
	o.Responses["202"] = &huma.Response{Description: "The delivery was recorded and will be processed.", Content: rest.JSONContent(schema)}
	o.Responses["401"] = &huma.Response{Description: "The signature does not match any secret.", Content: rest.JSONContent(r.Schema(reflect.TypeFor[api.Unauthorized](), true, ""))}
}

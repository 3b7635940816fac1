package account

import (
	"context"
	"net/http"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
)

const aboutTestModel = "Makes a few small model calls, which are billed by the provider, and reports whether each feature that agents need works. " +
	"Omitted fields are taken from the stored settings; nothing is stored. The response is 200 even if the model fails. " +
	"A stored key is only sent to the host that it was stored for."

// testModel tries a model out. It takes the model's time, so it does not keep the
// server from stopping.
func (d *Handlers) testModel(ctx context.Context, c *rest.Call, _ rest.None, in api.TestModel) (api.ModelReport, error) {
	if d.TestModel == nil {
		return api.ModelReport{}, rest.Fail(http.StatusServiceUnavailable, api.CodeUnavailable, "Models cannot be tested on this server.")
	}
	if d.Redact != nil {
		d.Redact(in.LLMAPIKey.Value)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.Life.Closing, cancel)()
	report, err := d.TestModel(ctx, c.Who.User, in)
	return report, usecase.SettingsMissing(err)
}

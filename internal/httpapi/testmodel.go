package httpapi

import (
	"context"
	"errors"
	"net/http"

	"deckhand/api"
	"deckhand/internal/settings"
)

const aboutTestModel = "Makes a few small model calls, which are billed by the provider, and reports whether each feature that agents need works. " +
	"Omitted fields are taken from the stored settings; nothing is stored. The response is 200 even if the model fails. " +
	"A stored key is only sent to the host that it was stored for."

// testModel tries a model out. It takes the model's time, so it does not keep the
// server from stopping.
func testModel(d *Door, ctx context.Context, c *call, _ none, in api.TestModel) (api.ModelReport, error) {
	if d.TestModel == nil {
		return api.ModelReport{}, fail(http.StatusServiceUnavailable, api.CodeUnavailable, "Models cannot be tested on this server.")
	}
	if d.Redact != nil {
		d.Redact(in.LLMAPIKey.Value)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.closing, cancel)()
	report, err := d.TestModel(ctx, c.who.User, in)
	if errors.Is(err, settings.ErrNotFound) {
		return report, fail(http.StatusBadRequest, api.CodeSettingsNotFound, "Settings not found")
	}
	return report, err
}

package httpapi

import (
	"context"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/settings"
)

const toTestModel = "/api/settings/test-model"

// tried is a rig that knows what its function was asked.
func tried(t *testing.T, answer func(ctx context.Context, user string, in api.TestModel) (api.ModelReport, error)) *rig {
	return newRig(t, tune{config: func(c *Config) { c.Account.TestModel = answer }})
}

func TestTestModel(t *testing.T) {
	var user string
	var asked api.TestModel
	yes, id := true, api.CodeLLMAuthentication
	r := tried(t, func(_ context.Context, u string, in api.TestModel) (api.ModelReport, error) {
		user, asked = u, in
		return api.ModelReport{Model: "acme/m", ErrorID: &id, Notes: []string{"A note."},
			Checks: []api.ModelCheck{{Name: "reachable", OK: &yes, Message: "It answers."}, {Name: "price", Message: "Nobody knows."}}}, nil
	})
	a := r.as("bob", "POST", toTestModel, `{"llm_model":"acme/m","llm_api_key":"`+canary+`","llm_base_url":null}`).want(t, 200)
	want := `{"ok":false,"model":"acme/m","checks":[{"name":"reachable","ok":true,"message":"It answers."},{"name":"price","ok":null,"message":"Nobody knows."}],"error_id":"STATUS$ERROR_LLM_AUTHENTICATION","notes":["A note."]}`
	if a.body != want {
		t.Errorf("%s", a.body)
	}
	if key, ok := asked.LLMAPIKey.Get(); user != "bob" || !ok || key != canary || asked.LLMModel.Value != "acme/m" || !asked.LLMBaseURL.Null {
		t.Errorf("%s: %+v", user, asked)
	}
	r.do("POST", toTestModel, `{}`).want(t, 200)
	if asked != (api.TestModel{}) {
		t.Errorf("%+v", asked)
	}
	r.do("POST", toTestModel, "").want(t, 200)
	if strings.Contains(r.logs.String(), canary) {
		t.Error("the key is in the log")
	}
}

func TestTestModelRefuses(t *testing.T) {
	var fails error
	r := tried(t, func(context.Context, string, api.TestModel) (api.ModelReport, error) { return api.ModelReport{}, fails })
	for body, field := range map[string]string{`{"llm_model":5}`: "llm_model", `{"llm_api_key":["` + canary + `"]}`: "llm_api_key", `{"llm_modle":"x"}`: "llm_modle",
		`{"llm_model":"` + strings.Repeat("m", 257) + `"}`: "llm_model"} {
		a := r.do("POST", toTestModel, body).want(t, 422)
		if !strings.Contains(a.body, field) || strings.Contains(a.body, canary) {
			t.Errorf("%s: %s", body, a.body)
		}
	}
	fails = api.Invalid("url_scheme", "Another address is needed.", "llm_base_url")
	if a := r.do("POST", toTestModel, `{}`).want(t, 422); !strings.Contains(a.body, "Another address") {
		t.Errorf("%s", a.body)
	}
	fails = settings.ErrNotFound
	if a := r.do("POST", toTestModel, `{}`).want(t, 400); !strings.Contains(a.body, api.CodeSettingsNotFound) {
		t.Errorf("%s", a.body)
	}
	newRig(t).do("POST", toTestModel, `{}`).want(t, 503)
}

// A model that takes its time does not keep the server from stopping.
func TestTestModelEndsWithTheServer(t *testing.T) {
	begun := make(chan struct{})
	r := tried(t, func(ctx context.Context, _ string, _ api.TestModel) (api.ModelReport, error) {
		close(begun)
		<-ctx.Done()
		return api.ModelReport{}, ctx.Err()
	})
	go func() {
		<-begun
		r.api.Close()
	}()
	r.do("POST", toTestModel, `{}`).want(t, 503)
}

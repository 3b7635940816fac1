package connect

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"deckhand/internal/llm"
	"deckhand/internal/llm/anthropic"
	"deckhand/internal/llm/cloud"
	"deckhand/internal/llm/converse"
	"deckhand/internal/llm/gemini"
	"deckhand/internal/llm/openai"
)

// CheckKey checks a key and returns it as it is stored: cloud credentials are put on one line. The error is a message for
// the user.
func CheckKey(provider, key string) (string, error) {
	switch provider {
	case "bedrock":
		a, err := cloud.ParseAWS(key)
		if err != nil {
			return key, sentence(err)
		}
		if a != nil {
			return a.Line(), nil
		}
	case "vertexai":
		if a, err := cloud.ParseServiceAccount(key); a != nil || err != nil {
			return key, sentence(err)
		}
	}
	if strings.ContainsFunc(strings.TrimSpace(key), unicode.IsControl) {
		return key, sentence(errors.New("the key contains line breaks or other control characters"))
	}
	return key, nil
}

// sentence turns an error into a message for the user.
func sentence(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	return errors.New(strings.ToUpper(text[:1]) + text[1:] + ".")
}

// claude reports whether a model in a cloud is one of Anthropic's.
func (w way) claude() bool { return strings.Contains(strings.ToLower(w.name), "claude") }

// chats reports whether the base URL belongs to an OpenAI-compatible API of the cloud, or to a proxy.
func chats(u *url.URL) bool {
	path := strings.TrimRight(u.Path, "/")
	return strings.HasSuffix(path, "/openapi") || strings.Contains(path, "/openai") ||
		strings.HasSuffix(path, "/v1") && !strings.HasSuffix(u.Hostname(), ".googleapis.com")
}

// bedrock opens a model at Amazon Bedrock.
func (w way) bedrock(c llm.Config, info llm.Info, o openai.Options) (llm.Model, error) {
	u, err := url.Parse(w.address)
	if err != nil {
		return nil, &llm.UnavailableError{Model: c.Model, Reason: "the base URL is not valid."}
	}
	credentials, err := cloud.ParseAWS(c.APIKey)
	if err != nil {
		return nil, &llm.UnavailableError{Model: c.Model, Reason: err.Error() + "."}
	}
	region := cloud.Region(u)
	if region == "" && credentials != nil {
		region = credentials.Region
	}
	if region == "" && credentials != nil {
		return nil, &llm.UnavailableError{Model: c.Model, Reason: needsAddress["bedrock"]}
	}
	c.Client, c.APIKey = cloud.Bedrock(c.Client, credentials, region, c.APIKey), ""
	at := strings.TrimRight(w.address, "/") + "/model/" + cloud.Escape(w.name)
	switch {
	case chats(u):
		return openai.Chat(c, w.name, o), nil
	case w.claude():
		return anthropic.New(c, w.name, anthropic.Options{Thinks: info.Thinks, Effort: c.Effort, Window: info.Window, Cloud: anthropic.Bedrock, Endpoint: at + "/invoke-with-response-stream"}), nil
	}
	return converse.New(c.Client, w.name, converse.Options{Endpoint: at + "/converse-stream", Window: info.Window}), nil
}

// dated matches the date at the end of a model name, for which Vertex AI uses another separator.
var dated = regexp.MustCompile(`-(20\d{6})$`)

// vertex opens a model at Google Vertex AI: of Google, of Anthropic, or (with a vendor in its name) of another vendor.
func (w way) vertex(c llm.Config, info llm.Info, o openai.Options, tokens *cloud.Tokens) (llm.Model, error) {
	u, err := url.Parse(w.address)
	if err != nil {
		return nil, &llm.UnavailableError{Model: c.Model, Reason: "the base URL is not valid."}
	}
	account, err := cloud.ParseServiceAccount(c.APIKey)
	if err != nil {
		return nil, &llm.UnavailableError{Model: c.Model, Reason: err.Error() + "."}
	}
	place := cloud.FindPlace(u, account)
	c.Client, c.APIKey = tokens.Vertex(c.Client, account, c.APIKey), ""
	switch {
	case chats(u):
		return openai.Chat(c, w.name, o), nil
	case place.Project == "":
		return nil, &llm.UnavailableError{Model: c.Model, Reason: "the Google Cloud project is not known; use the key file of a service account as the key, or the base URL https://LOCATION-aiplatform.googleapis.com/v1/projects/PROJECT/locations/LOCATION."}
	case w.claude():
		at := place.At("v1") + "/publishers/anthropic/models/" + url.PathEscape(dated.ReplaceAllString(w.name, "@$1")) + ":streamRawPredict"
		return anthropic.New(c, w.name, anthropic.Options{Thinks: info.Thinks, Effort: c.Effort, Window: info.Window, Cloud: anthropic.Vertex, Endpoint: at}), nil
	case strings.Contains(w.name, "/"):
		c.BaseURL = place.At("v1") + "/endpoints/openapi"
		return openai.Chat(c, w.name, o), nil
	}
	return gemini.New(c, w.name, gemini.Options{Thinks: info.Thinks, Effort: c.Effort, Window: info.Window, Vertex: place.At("v1beta1") + "/publishers/google"}), nil
}

package catalogue

import "strings"

// API is the API of a provider.
type API string

// The APIs.
const (
	Chat      API = "chat"
	Responses API = "responses"
	Anthropic API = "anthropic"
	Gemini    API = "gemini"
	// Bedrock and Vertex are clouds, where the API depends on the model.
	Bedrock API = "bedrock"
	Vertex  API = "vertex"
)

// Provider is how to reach a provider.
type Provider struct {
	API API
	// Address is the base URL, or "" if the adapter knows it or the user must enter it.
	Address string
}

// more are providers that the compiled-in data does not have. Local ones have their
// default URLs.
var more = map[string]Provider{
	"mistral":    {Chat, "https://api.mistral.ai/v1"},
	"together":   {Chat, "https://api.together.xyz/v1"},
	"deepinfra":  {Chat, "https://api.deepinfra.com/v1/openai"},
	"perplexity": {Chat, "https://api.perplexity.ai"},
	"nvidia_nim": {Chat, "https://integrate.api.nvidia.com/v1"},
	"ollama":     {Chat, "http://localhost:11434/v1"},
	"lemonade":   {Chat, "http://localhost:8000/api/v1"},
	"lmstudio":   {Chat, "http://localhost:1234/v1"},
	"vllm":       {Chat, "http://localhost:8000/v1"},
}

// aliases are other names of providers, mostly from the libraries that settings were
// first written for.
var aliases = map[string]string{
	"google":           "gemini",
	"google_ai_studio": "gemini",
	"vertex_ai":        "vertexai",
	"together_ai":      "together",
	"fireworks_ai":     "fireworks",
	"mistralai":        "mistral",
	"moonshotai":       "moonshot",
	"x-ai":             "xai",
	"z-ai":             "zai",
	"dashscope":        "alibaba-singapore",
	"bedrock_converse": "bedrock",
	"bedrock-europe":   "bedrock",
	"ollama_chat":      "ollama",
	"lm_studio":        "lmstudio",
	"hosted_vllm":      "vllm",
}

// vendors make models and publish prices. A model without a vendor is looked up in this
// order.
var vendors = []string{"anthropic", "openai", "gemini", "xai", "deepseek", "moonshot", "zai", "minimax"}

// market is the provider with the longest list, and marketNames what it calls the
// others. It tells what a model can do that its vendor does not list.
const market = "openrouter"

var marketNames = map[string]string{
	"gemini": "google", "xai": "x-ai", "moonshot": "moonshotai", "zai": "z-ai", "mistral": "mistralai", "alibaba-singapore": "qwen", "alibaba-us": "qwen",
}

// resellers offer models at the vendors' prices. For all others, a price from another
// list would be a guess.
var resellers = map[string]bool{"litellm_proxy": true, "openhands": true, "azure": true, "bedrock": true, "vertexai": true}

// Split splits a model name into the provider, by its canonical name, and the provider's
// name for the model.
func Split(model string) (provider, name string) {
	provider, name, _ = strings.Cut(strings.TrimSpace(model), "/")
	provider = canonicalProvider(provider)
	if rest, ok := strings.CutPrefix(name, "responses/"); ok && (provider == "openai" || provider == "azure") {
		name = rest // says how to ask, not what
	}
	return provider, name
}

func canonicalProvider(name string) string {
	name = strings.ToLower(name)
	if a, ok := aliases[name]; ok {
		return a
	}
	return name
}

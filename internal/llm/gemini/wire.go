package gemini

import "encoding/json"

// The wire: what is used of the Gemini API.

type config struct {
	MaxOutput int32     `json:"maxOutputTokens,omitempty"`
	Thinking  *thinking `json:"thinkingConfig,omitempty"`
}

type thinking struct {
	Include bool   `json:"includeThoughts,omitempty"`
	Budget  int32  `json:"thinkingBudget,omitempty"`
	Level   string `json:"thinkingLevel,omitempty"`
}

type function struct {
	Description string          `json:"description,omitempty"`
	Name        string          `json:"name"`
	Schema      json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

const (
	roleUser  = "user"
	roleModel = "model"
)

// content is a turn, in requests and answers.
type content struct {
	Parts []*part `json:"parts,omitempty"`
	Role  string  `json:"role,omitempty"`
}

// part has one of a text, a call, a result and an image.
type part struct {
	Call      *functionCall   `json:"functionCall,omitempty"`
	Result    *functionResult `json:"functionResponse,omitempty"`
	Image     *blob           `json:"inlineData,omitempty"`
	Text      string          `json:"text,omitempty"`
	Thought   bool            `json:"thought,omitempty"`
	Signature []byte          `json:"thoughtSignature,omitempty"`
}

type functionCall struct {
	Args map[string]any `json:"args,omitempty"`
	ID   string         `json:"id,omitempty"`
	Name string         `json:"name,omitempty"`
}

type functionResult struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name,omitempty"`
	Response map[string]string `json:"response"`
}

type blob struct {
	Data     []byte `json:"data"`
	MIMEType string `json:"mimeType,omitempty"`
}

// chunk is a frame of an answer.
type chunk struct {
	Candidates []struct {
		Content       *content `json:"content"`
		FinishReason  string   `json:"finishReason"`
		FinishMessage string   `json:"finishMessage"`
	} `json:"candidates"`
	Feedback struct {
		BlockReason  string `json:"blockReason"`
		BlockMessage string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage *usage `json:"usageMetadata"`
}

// usage is what was counted. Some servers write whole numbers as floats.
type usage struct {
	Prompt     float64 `json:"promptTokenCount"`
	ToolPrompt float64 `json:"toolUsePromptTokenCount"`
	Answer     float64 `json:"candidatesTokenCount"`
	Thoughts   float64 `json:"thoughtsTokenCount"`
	Cached     float64 `json:"cachedContentTokenCount"`
}

// apiError is an error that the provider reports.
type apiError struct {
	Code    int              `json:"code"`
	Message string           `json:"message"`
	Status  string           `json:"status"`
	Details []map[string]any `json:"details"`
	// foreign says that it is not in the provider's words, but in a proxy's. The
	// message is then the whole body.
	foreign bool
}

func (e *apiError) Error() string { return e.Message }

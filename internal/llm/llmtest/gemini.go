package llmtest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"deckhand/internal/llm"
)

// geminiWire speaks Gemini's generateContent.
type geminiWire struct{}

func (geminiWire) serves(path string) bool {
	return strings.Contains(path, "/models/") &&
		(strings.HasSuffix(path, ":streamGenerateContent") || strings.HasSuffix(path, ":generateContent"))
}

// geminiSignature is what the first call of an answer must come back with.
func geminiSignature(c llm.Call) string {
	return base64.StdEncoding.EncodeToString([]byte("signed: " + c.Name))
}

// geminiSkip is the signature that the provider takes for calls it did not make.
const geminiSkip = "skip_thought_signature_validator"

// geminiParts are the parts of an answer, its texts in fragments. The first of
// parallel calls is signed. Calls have an id only if the script gave them one,
// as older models give none.
func geminiParts(r Reply) []map[string]any {
	var parts []map[string]any
	for _, piece := range r.fragments(r.Reasoning) {
		parts = append(parts, map[string]any{"text": piece, "thought": true})
	}
	for _, piece := range r.fragments(r.Text) {
		parts = append(parts, map[string]any{"text": piece})
	}
	for i, c := range r.Calls {
		var input map[string]any
		if json.Unmarshal([]byte(args(c)), &input) != nil {
			input = map[string]any{}
		}
		call := map[string]any{"name": c.Name, "args": input}
		if c.ID != "" {
			call["id"] = c.ID
		}
		part := map[string]any{"functionCall": call}
		if i == 0 {
			part["thoughtSignature"] = geminiSignature(c)
		}
		parts = append(parts, part)
	}
	return parts
}

// geminiUsage counts as the provider does: promptTokenCount includes the cached
// ones, while the thoughts are beside the answer's.
func geminiUsage(a Asked, r Reply) map[string]any {
	u := r.usage(a)
	thoughts := min(int64(len(r.Reasoning)/4), u.Output)
	return map[string]any{
		"promptTokenCount":        u.Input,
		"cachedContentTokenCount": u.CacheRead,
		"candidatesTokenCount":    u.Output - thoughts,
		"thoughtsTokenCount":      thoughts,
		"totalTokenCount":         u.Input + u.Output,
	}
}

// geminiChunk is a piece of an answer, the last one with the reason of its end.
func geminiChunk(a Asked, r Reply, last bool, parts ...map[string]any) map[string]any {
	chunk := map[string]any{"modelVersion": a.Model, "responseId": "resp_test", "usageMetadata": geminiUsage(a, r)}
	if last && r.Code != "" && r.Text == "" && len(r.Calls) == 0 {
		chunk["promptFeedback"] = map[string]any{"blockReason": r.Code}
		return chunk
	}
	candidate := map[string]any{"index": 0}
	if len(parts) > 0 {
		candidate["content"] = map[string]any{"role": "model", "parts": parts}
	}
	if last {
		candidate["finishReason"] = geminiFinish(r)
	}
	chunk["candidates"] = []any{candidate}
	return chunk
}

// geminiFinish is why an answer ended.
func geminiFinish(r Reply) string {
	switch {
	case r.Code != "":
		return r.Code
	case r.Cut:
		return "MAX_TOKENS"
	}
	return "STOP"
}

func (geminiWire) stream(a Asked, r Reply) []frame {
	var frames []frame
	for _, p := range geminiParts(r) {
		frames = append(frames, jsonFrame("", geminiChunk(a, r, false, p)))
	}
	return append(frames, jsonFrame("", geminiChunk(a, r, true)))
}

func (geminiWire) whole(a Asked, r Reply) []byte {
	r.Fragment = len(r.Text) + len(r.Reasoning) + 1
	return mustJSON(geminiChunk(a, r, true, geminiParts(r)...))
}

// geminiStatus are the names of errors by their status.
var geminiStatus = map[int]string{
	http.StatusBadRequest:          "INVALID_ARGUMENT",
	http.StatusUnauthorized:        "UNAUTHENTICATED",
	http.StatusForbidden:           "PERMISSION_DENIED",
	http.StatusNotFound:            "NOT_FOUND",
	http.StatusTooManyRequests:     "RESOURCE_EXHAUSTED",
	http.StatusInternalServerError: "INTERNAL",
	http.StatusServiceUnavailable:  "UNAVAILABLE",
	http.StatusGatewayTimeout:      "DEADLINE_EXCEEDED",
}

// failure is an error as Google's APIs have it. A Code that is not one of their
// statuses is the reason in the details. RetryAfter is also told there.
func (geminiWire) failure(r Reply) []byte {
	status, details := geminiStatus[r.Status], []any{}
	if status == "" {
		status = "UNKNOWN"
	}
	switch {
	case r.Code == "":
	case isGeminiStatus(r.Code):
		status = r.Code
	default:
		details = append(details, map[string]any{
			"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": r.Code, "domain": "googleapis.com",
		})
	}
	if seconds, err := strconv.Atoi(r.RetryAfter); err == nil {
		details = append(details, map[string]any{
			"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": strconv.Itoa(seconds) + "s",
		})
	}
	return mustJSON(map[string]any{"error": map[string]any{"code": r.Status, "message": r.Message, "status": status, "details": details}})
}

func isGeminiStatus(code string) bool {
	for _, s := range geminiStatus {
		if s == code {
			return true
		}
	}
	return false
}

func (w geminiWire) late(r Reply) frame {
	if r.Status == 0 {
		r.Status = http.StatusServiceUnavailable
	}
	if r.Message == "" {
		r.Message = "The model is overloaded. Please try again later."
	}
	return frame{data: w.failure(r)}
}

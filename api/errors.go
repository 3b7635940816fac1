package api

import (
	"fmt"
	"strings"
)

// Machine-readable error codes. The message next to them is for people.
const (
	CodeSettingsNotFound     = "CONFIGURATION$SETTINGS_NOT_FOUND"
	CodeLLMAuthentication    = "STATUS$ERROR_LLM_AUTHENTICATION"
	CodeGitAuthentication    = "STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR"
	CodeGitBranch            = "STATUS$GIT_BRANCH_NOT_FOUND"
	CodeGitClone             = "STATUS$GIT_CLONE_FAILED"
	CodeConversationNotFound = "CONVERSATION$NOT_FOUND"
	CodeConversationTaken    = "CONVERSATION$ID_TAKEN"
	CodeConversationRefused  = "CONVERSATION$REFUSED"
	CodeRestoreConflict      = "CONVERSATION$RESTORE_CONFLICT"
	CodeSandboxImage         = "CONFIGURATION$SANDBOX_IMAGE_UNSUPPORTED"
	CodeModelUnavailable     = "CONFIGURATION$MODEL_UNAVAILABLE"
	CodePriceUnknown         = "CONFIGURATION$MODEL_PRICE_UNKNOWN"
	CodeBudget               = "STATUS$ERROR_BUDGET"
	CodeUserBudget           = "STATUS$ERROR_USER_BUDGET"
	CodeMaxIterations        = "STATUS$ERROR_MAX_ITERATIONS"
	CodeStuck                = "STATUS$ERROR_STUCK"
	CodeUnauthorized         = "AUTHORIZATION$UNAUTHORIZED"
	CodeForbidden            = "AUTHORIZATION$PERMISSION_DENIED"
	CodeNotFound             = "REQUEST$NOT_FOUND"
	CodeNoWorkspace          = "WORKSPACE$NOT_READY"
	CodeWorkspaceStopped     = "WORKSPACE$STOPPED"
	CodeBinaryFile           = "WORKSPACE$BINARY_FILE"
	CodeNoRepository         = "WORKSPACE$NO_REPOSITORY"
	CodeSandbox              = "STATUS$ERROR"
	CodeConflict             = "REQUEST$CONFLICT"
	CodeTooLarge             = "REQUEST$TOO_LARGE"
	CodeRateLimited          = "REQUEST$RATE_LIMITED"
	CodeQueueFull            = "REQUEST$QUEUE_FULL"
	CodeBadRequest           = "REQUEST$BAD"
	CodeUnavailable          = "SERVER$UNAVAILABLE"
	CodeInternal             = "SERVER$INTERNAL"
)

// Codes of notices in the log of a conversation.
const (
	CodeAttemptsStarted = "STATUS$ATTEMPTS_STARTED"
	CodeTestsPassed     = "STATUS$TESTS_PASSED"
	CodeTestsFailed     = "STATUS$TESTS_FAILED"
)

// FieldError says which field is invalid, why, and what is valid. Msg never contains the
// value, which may be a secret.
type FieldError struct {
	// Loc is the path to the field, e.g. ["body", "mcp_config", "sse_servers", 0, "url"].
	Loc []any `json:"loc" doc:"Path to the field: location (body, query, path, header), then names and indexes."`
	// Msg is a sentence that says what to do.
	Msg string `json:"msg" doc:"Human-readable description of the error."`
	// Type is a short stable code: missing, extra_forbidden, string_type, greater_than_equal, …
	Type string `json:"type" doc:"Stable, machine-readable error type."`
}

// MaxFaults is how many errors one ValidationError has at most.
const MaxFaults = 100

// ValidationError is the body of every 422.
type ValidationError struct {
	Detail []FieldError `json:"detail"`
	MsgID  string       `json:"msg_id" doc:"Stable, machine-readable error code."`
}

// Error joins all errors in one line.
func (e *ValidationError) Error() string {
	parts := make([]string, len(e.Detail))
	for i, d := range e.Detail {
		loc := make([]string, len(d.Loc))
		for j, p := range d.Loc {
			loc[j] = fmt.Sprint(p)
		}
		parts[i] = strings.Join(loc, ".") + ": " + d.Msg
	}
	return strings.Join(parts, "; ")
}

// Invalid returns a ValidationError for one field of the body.
func Invalid(typ, msg string, path ...any) *ValidationError {
	return &ValidationError{Detail: []FieldError{{Loc: append([]any{"body"}, path...), Msg: msg, Type: typ}}}
}

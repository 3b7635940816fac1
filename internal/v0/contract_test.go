package v0_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/v0"
)

// shape is the keys that a client may rely on, with their JSON types; "string|null"
// allows both.
type shape map[string]string

var envelope = shape{"id": "number", "timestamp": "string", "source": "string", "message": "string"}

// The keys of an envelope. No other stands beside them.
var (
	ofActions      = []string{"id", "timestamp", "source", "message", "action", "args", "timeout", "tool_call_metadata", "llm_metrics"}
	ofObservations = []string{"id", "timestamp", "source", "message", "cause", "observation", "content", "extras", "success", "tool_call_metadata"}
)

// The args of every action, as the contract lists them, but for null, which is never sent.
var actionArgs = map[string]shape{
	"message": {
		"content": "string", "file_urls": "array|null", "image_urls": "array|null", "wait_for_response": "bool", "security_risk": "number",
	},
	"system": {"content": "string", "tools": "array|null", "openhands_version": "string|null", "agent_class": "string|null"},
	"run": {
		"command": "string", "is_input": "bool", "thought": "string", "blocking": "bool", "is_static": "bool", "cwd": "string|null",
		"hidden": "bool", "security_risk": "number",
	},
	"run_ipython": {
		"code": "string", "thought": "string", "include_extra": "bool", "security_risk": "number",
		"kernel_init_code": "string",
	},
	"read": {
		"path": "string", "start": "number", "end": "number", "thought": "string", "security_risk": "number", "impl_source": "string",
		"view_range": "array|null",
	},
	"write": {"path": "string", "content": "string", "start": "number", "end": "number", "thought": "string", "security_risk": "number"},
	"edit": {
		"path": "string", "command": "string", "file_text": "string|null", "old_str": "string|null", "new_str": "string|null",
		"insert_line": "number|null", "content": "string", "start": "number", "end": "number", "thought": "string",
		"security_risk": "number", "impl_source": "string",
	},
	"browse": {"url": "string", "thought": "string", "security_risk": "number", "return_axtree": "bool"},
	"browse_interactive": {
		"browser_actions": "string", "thought": "string", "browsergym_send_msg_to_user": "string", "security_risk": "number",
		"return_axtree": "bool",
	},
	"call_tool_mcp":      {"name": "string", "arguments": "object", "thought": "string", "security_risk": "number"},
	"think":              {"thought": "string"},
	"finish":             {"final_thought": "string", "outputs": "object", "thought": "string"},
	"reject":             {"outputs": "object", "thought": "string"},
	"delegate":           {"agent": "string", "inputs": "object", "thought": "string"},
	"recall":             {"recall_type": "string", "query": "string", "thought": "string"},
	"change_agent_state": {"agent_state": "string", "thought": "string"},
	"condensation": {
		"forgotten_event_ids": "array|null", "forgotten_events_start_id": "number|null", "forgotten_events_end_id": "number|null",
		"summary": "string|null", "summary_offset": "number|null",
	},
	"condensation_request": {},
	"task_tracking":        {"command": "string", "task_list": "array", "thought": "string"},
}

// The extras of every observation.
var observationExtras = map[string]shape{
	"run":         {"command": "string", "metadata": "object", "hidden": "bool"},
	"run_ipython": {"code": "string", "image_urls": "array|null"},
	"read":        {"path": "string", "impl_source": "string"},
	"edit": {
		"path": "string", "prev_exist": "bool", "old_content": "string|null", "new_content": "string|null", "impl_source": "string",
		"diff": "string|null", "_diff_cache": "string|null",
	},
	"browse": {
		"url": "string", "trigger_by_action": "string", "screenshot": "string", "screenshot_path": "string|null", "set_of_marks": "string",
		"error": "bool", "goal_image_urls": "array", "open_pages_urls": "array", "active_page_index": "number", "dom_object": "object",
		"axtree_object": "object", "extra_element_properties": "object", "last_browser_action": "string",
		"last_browser_action_error": "string", "focused_element_bid": "string", "filter_visible_only": "bool",
	},
	"mcp":                 {"name": "string", "arguments": "object"},
	"think":               {},
	"task_tracking":       {"command": "string", "task_list": "array"},
	"agent_state_changed": {"agent_state": "string", "reason": "string"},
	"error":               {"error_id": "string"},
	"write":               {"path": "string"},
	"success":             {},
	"condense":            {},
	"download":            {"file_path": "string"},
	"user_rejected":       {},
	"delegate":            {"outputs": "object"},
	"recall": {
		"recall_type": "string", "repo_name": "string", "repo_directory": "string", "repo_branch": "string", "repo_instructions": "string",
		"runtime_hosts": "object", "additional_agent_instructions": "string", "date": "string", "custom_secrets_descriptions": "object",
		"conversation_instructions": "string", "working_dir": "string", "microagent_knowledge": "array",
	},
}

// additions are our keys that the contract does not have. Of actions they are
// only there while a call waits for the person.
var additions = map[string][]string{
	"agent_state_changed": {"error_id"}, "run": {"confirmation_state"}, "run_ipython": {"confirmation_state"}, "read": {"confirmation_state"}, "edit": {"confirmation_state"}, "browse": {"confirmation_state"},
	"browse_interactive": {"confirmation_state"}, "call_tool_mcp": {"confirmation_state"}, "delegate": {"confirmation_state"},
}

var knowledge = shape{"name": "string", "trigger": "string", "content": "string"}

var runMetadata = shape{
	"exit_code": "number", "pid": "number", "username": "string", "hostname": "string", "working_dir": "string",
	"py_interpreter_path": "string", "prefix": "string", "suffix": "string",
}

var task = shape{"id": "string", "title": "string", "status": "string", "notes": "string"}

var metrics = shape{
	"accumulated_cost": "number", "max_budget_per_task": "number|null", "accumulated_token_usage": "object", "costs": "array",
	"response_latencies": "array", "token_usages": "array",
}

var tokenUsage = shape{
	"model": "string", "prompt_tokens": "number", "completion_tokens": "number", "cache_read_tokens": "number",
	"cache_write_tokens": "number", "context_window": "number", "per_turn_token": "number", "response_id": "string",
}

var toolMetadata = shape{
	"function_name": "string", "tool_call_id": "string", "model_response": "object", "total_calls_in_response": "number",
}

// The model's answer has the shape in which its providers write one.
var (
	modelResponse = shape{"id": "string", "created": "number", "model": "string", "object": "string", "choices": "array", "usage": "object|null"}
	choice        = shape{"finish_reason": "string", "index": "number", "message": "object"}
	answer        = shape{"role": "string", "content": "string|null", "tool_calls": "array"}
	answerCall    = shape{"id": "string", "type": "string", "function": "object"}
	function      = shape{"name": "string", "arguments": "string"}
)

func TestFramesMatchTheContract(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range allCases() {
		f, err := v0.Encode(convo, c.event())
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind == v0.None {
			continue
		}
		var got map[string]any
		if err := json.Unmarshal(f.JSON, &got); err != nil {
			t.Fatal(err)
		}
		t.Run(c.name, func(t *testing.T) {
			if f.Kind == v0.Status {
				has(t, got, shape{"status_update": "bool", "type": "string", "message": "string"})
				return
			}
			_, past := c.give.(session.Imported)
			seen[checkEvent(t, got, past)] = true
		})
	}
	for kind := range actionArgs {
		if !seen["action "+kind] {
			t.Errorf("no case shows the action %s", kind)
		}
	}
	for kind := range observationExtras {
		if !seen["observation "+kind] {
			t.Errorf("no case shows the observation %s", kind)
		}
	}
}

// checkEvent holds an event to the contract. One from the past need not say which
// call it answers, for not all did.
func checkEvent(t *testing.T, got map[string]any, past bool) string {
	t.Helper()
	has(t, got, envelope)
	if !zoned.MatchString(got["timestamp"].(string)) {
		t.Errorf("the timestamp is %v, without a zone", got["timestamp"])
	}
	if !slices.Contains([]any{"agent", "user", "environment"}, got["source"]) {
		t.Errorf("the source is %v", got["source"])
	}
	if m, ok := got["llm_metrics"].(map[string]any); ok {
		exactly(t, m, metrics)
		exactly(t, m["accumulated_token_usage"].(map[string]any), tokenUsage)
	}
	if m, ok := got["tool_call_metadata"].(map[string]any); ok {
		checkMetadata(t, m)
	}
	if kind, ok := got["action"].(string); ok {
		want, known := actionArgs[kind]
		if !known {
			t.Fatalf("the contract has no action %q", kind)
		}
		args := got["args"].(map[string]any)
		for _, name := range additions[kind] {
			if state, ok := args[name]; ok && state != "awaiting_confirmation" && !past {
				t.Errorf("%s is %v, without a pending approval", name, state)
			}
			delete(args, name)
		}
		exactly(t, args, want)
		tasks(t, args)
		only(t, got, ofActions)
		rated(t, args)
		return "action " + kind
	}
	kind, _ := got["observation"].(string)
	want, known := observationExtras[kind]
	if !known {
		t.Fatalf("the contract has no observation %q", kind)
	}
	has(t, got, shape{"content": "string", "extras": "object"})
	extras := got["extras"].(map[string]any)
	for _, name := range additions[kind] {
		delete(extras, name)
	}
	exactly(t, extras, want)
	tasks(t, extras)
	only(t, got, ofObservations)
	if kind == "run" {
		exactly(t, extras["metadata"].(map[string]any), runMetadata)
	}
	if kind == "run" || kind == "run_ipython" {
		has(t, got, shape{"success": "bool"})
	}
	switch kind {
	case "agent_state_changed":
	case "recall":
		if _, asked := got["cause"]; asked { // logs of older versions do not say
			has(t, got, shape{"cause": "number"})
		}
		for _, item := range extras["microagent_knowledge"].([]any) {
			exactly(t, item.(map[string]any), knowledge)
		}
	default:
		if past || kind == "run" && got["source"] == "environment" {
			break // the repository's script, which no agent called
		}
		if kind == "run" && got["source"] == "user" { // nor did one call this
			has(t, got, shape{"cause": "number"})
			break
		}
		has(t, got, shape{"cause": "number", "tool_call_metadata": "object"})
	}
	return "observation " + kind
}

// zoned is the contract's form of a time, and the zone that it lacks there.
var zoned = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)

// checkMetadata looks for the call in the answer that is told with it.
func checkMetadata(t *testing.T, m map[string]any) {
	t.Helper()
	exactly(t, m, toolMetadata)
	response := m["model_response"].(map[string]any)
	exactly(t, response, modelResponse)
	first := response["choices"].([]any)[0].(map[string]any)
	exactly(t, first, choice)
	message := first["message"].(map[string]any)
	exactly(t, message, answer)
	made := message["tool_calls"].([]any)[0].(map[string]any)
	exactly(t, made, answerCall)
	exactly(t, made["function"].(map[string]any), function)
	if made["id"] != m["tool_call_id"] || made["function"].(map[string]any)["name"] != m["function_name"] {
		t.Errorf("the answer is about another call: %v", made)
	}
}

// rated checks the values that clients compare.
func rated(t *testing.T, args map[string]any) {
	t.Helper()
	if risk, ok := args["security_risk"]; ok && !slices.Contains([]any{-1.0, 0.0, 1.0, 2.0}, risk) {
		t.Errorf("the risk is %v", risk)
	}
	if state, ok := args["confirmation_state"]; ok && !slices.Contains([]any{"confirmed", "rejected", "awaiting_confirmation"}, state) {
		t.Errorf("the confirmation is %v", state)
	}
}

// only fails for keys that are not among these.
func only(t *testing.T, got map[string]any, keys []string) {
	t.Helper()
	for name := range got {
		if !slices.Contains(keys, name) {
			t.Errorf("%s is not in the contract", name)
		}
	}
	if limit, ok := got["timeout"]; ok && typeOf(limit) != "number" {
		t.Errorf("the timeout is %v", limit)
	}
}

func tasks(t *testing.T, in map[string]any) {
	t.Helper()
	list, _ := in["task_list"].([]any)
	for _, item := range list {
		exactly(t, item.(map[string]any), task)
	}
}

// has checks the keys of want; others may be there.
func has(t *testing.T, got map[string]any, want shape) {
	t.Helper()
	for name, typ := range want {
		v, ok := got[name]
		if !ok {
			t.Errorf("%s is missing", name)
		} else if !slices.Contains(strings.Split(typ, "|"), typeOf(v)) {
			t.Errorf("%s is %s, wanted %s", name, typeOf(v), typ)
		}
	}
}

func exactly(t *testing.T, got map[string]any, want shape) {
	t.Helper()
	has(t, got, want)
	for name := range maps.Keys(got) {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is not in the contract", name)
		}
	}
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}

package v0_test

import (
	"encoding/json"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/v0"
)

const convo = session.ID("5f0c0d11e2a34b5c8d7e6f5a4b3c2d1e")

var moment = time.Date(2026, 1, 2, 15, 4, 5, 123456000, time.UTC)

// oneCase is an event and how it travels. What it becomes is in testdata, under its name.
type oneCase struct {
	name string
	want v0.FrameKind
	give session.Payload
}

func (c oneCase) event() session.Event {
	return session.Event{Number: 14, At: moment, Payload: c.give}
}

var totals = session.Totals{Cost: 13_200_000, Input: 5120, Output: 210, CacheRead: 4096, CacheWrite: 900, Model: "m"}

func called(name, args string) session.ToolCalled {
	return session.ToolCalled{
		ToolCall: session.ToolCall{ID: "call_7", Name: name, Args: json.RawMessage(args)},
		Thought:  "Let me look.", Risk: session.RiskLow, Answer: 13, InAnswer: 2, Totals: totals,
	}
}

func returned(name, args, output, details string) session.ToolReturned {
	return session.ToolReturned{
		ID: "call_7", Name: name, Cause: 12, Outcome: session.Succeeded, Output: output,
		Args: json.RawMessage(args), Details: json.RawMessage(details),
	}
}

func ended(r session.ToolReturned, o session.Outcome) session.ToolReturned {
	r.Outcome = o
	return r
}

func partial(r session.ToolReturned) session.ToolReturned {
	r.Partial = true
	return r
}

func awaiting(c session.ToolCalled) session.ToolCalled {
	c.Awaits, c.Risk = true, session.RiskHigh
	return c
}

func allCases() []oneCase {
	return append(append(append(plainCases(), callCases()...), resultCases()...), append(importedCases(), legacyCases()...)...)
}

func plainCases() []oneCase {
	return []oneCase{
		{"created", v0.Event, session.Created{Owner: "ada", Repository: "octo/app"}},
		{"user_said", v0.Event, session.UserSaid{Text: "Add a README,\nplease: \"now\" <b>ä</b> \x00\xff"}},
		{"user_said_attachments", v0.Event, session.UserSaid{
			Text: "Look", Images: []string{"data:image/png;base64,iVBO"}, Files: []string{"/workspace/a.txt", "b.txt"}, Key: "k",
		}},
		{"compact_asked", v0.None, session.CompactAsked{Instructions: "keep the plan"}},
		{"withdrawn", v0.None, session.Withdrawn{Messages: []int64{2}}},
		{"claimed", v0.None, session.Claimed{By: "replica-1"}},
		{"workspace_ready", v0.Status, session.WorkspaceReady{Handle: json.RawMessage(`{"pid":1}`)}},
		{"workspace_step_pulling", v0.Status, session.WorkspaceStep{Step: "pulling", Message: "Pulling debian:12: 45 of 120 MB"}},
		{"workspace_step_starting", v0.Status, session.WorkspaceStep{Step: "starting"}},
		{"workspace_step_setup", v0.Status, session.WorkspaceStep{Step: "setup", Message: "Running .openhands/setup.sh"}},
		{"workspace_step_hooks", v0.Status, session.WorkspaceStep{Step: "hooks"}},
		{"checked_out", v0.Status, session.CheckedOut{
			Repository: "octo/app", Provider: "github", Branch: "deckhand-a1b2c3d4", Fresh: true, Commit: "c0ffee", Dir: "/workspace/app", Folder: "app", Script: ".openhands/setup.sh",
			Notes: []string{"The submodule lib could not be fetched."},
		}},
		{"set_up", v0.Event, session.SetUp{Script: ".openhands/setup.sh", Output: "installed\n"}},
		{"set_up_failed", v0.Event, session.SetUp{Script: ".openhands/setup.sh", Exit: -1, Output: "waiting", Problem: "It did not end within 10 minutes."}},
		{"trust_set", v0.Status, session.TrustSet{Trusted: true, Reason: session.TrustByPush}},
		{"trust_set_not", v0.Status, session.TrustSet{Reason: session.TrustNoPush}},
		{"set_up_began", v0.None, session.SetUpBegan{Script: ".openhands/setup.sh", Hash: "ab12"}},
		{"set_up_began_confined", v0.Status, session.SetUpBegan{Script: ".openhands/setup.sh", Hash: "ab12", Confined: true}},
		{"hook_set", v0.None, session.HookSet{Script: ".openhands/pre-commit.sh", Hash: "cd34", Installed: true}},
		{"hook_set_not", v0.Status, session.HookSet{Script: ".openhands/pre-commit.sh", Problem: ".openhands/pre-commit.sh was not installed: the repository is not trusted."}},
		{"egress_set", v0.Status, session.EgressSet{Mode: "allowlist", Allow: []string{"example.org", "*.example.net"}}},
		{"egress_set_off", v0.Status, session.EgressSet{Mode: "off"}},
		{"overridden", v0.Status, session.Overridden{Model: "openai/gpt-4o", Budget: 2_500_000_000, Limited: true}},
		{"overridden_plan", v0.Status, session.Overridden{Plan: true}},
		{"overridden_back", v0.Status, session.Overridden{}},
		{"checkpointed", v0.None, session.Checkpointed{Checkpoint: 2, UpTo: 7, Files: 12, Changed: 3, Bytes: 4096}},
		{"restored", v0.Status, session.Restored{Action: session.RestorePoint, Point: 7, Files: true, Checkpoint: 1, Before: 2, Changed: 3}},
		{"briefed", v0.Event, session.Briefed{
			Prompt: "You are …", Tools: json.RawMessage("[\n {\"type\": \"function\",\n\"function\":{\"name\":\"execute_bash\",\"parameters\":{}}}]"),
			Agent: "CodeActAgent", Model: "m",
		}},
		{"briefed_no_tools", v0.Event, session.Briefed{Prompt: "You are …", Agent: "CodeActAgent"}},
		{"recall_asked", v0.Event, session.RecallAsked{Of: 2, Type: "workspace_context", Query: "Add a README that says what the program does, and how it is built"}},
		{"recalled", v0.Event, session.Recalled{
			Of: 2, Asked: 13, Text: "You are in /workspace/app.",
			Details: json.RawMessage(`{"recall_type":"workspace_context","repo_name":"octo/app","repo_directory":"app","repo_branch":"main","repo_instructions":"Run make.",` +
				`"date":"2026-01-02","conversation_instructions":"Be brief.","working_dir":"/workspace/app","custom_secrets_descriptions":{"TOKEN":"for the registry","A":""}}`),
		}},
		{"recalled_knowledge", v0.Event, session.Recalled{
			Of: 12, Asked: 13, Text: "About tests: …", Details: json.RawMessage(`{"recall_type":"knowledge"}`),
			Items: []session.Knowledge{{Name: "tests", Trigger: "test", Content: "Use \"make test\".\n"}, {Name: "ci"}},
		}},
		{"recalled_bare", v0.Event, session.Recalled{Of: 2, Text: "x", Details: json.RawMessage(`[]`)}},
		{"nudged", v0.Status, session.Nudged{Rule: "stuck", Text: "You are going round in circles."}},
		{"replayed", v0.None, session.Replayed{Next: 3, Done: true}},
		{"granted", v0.None, session.Granted{Child: "c1", Amount: 5}},
		{"settled", v0.None, session.Settled{Child: "c1", Cost: 3, Totals: totals}},
		{"capped", v0.None, session.Capped{Limit: 3}},
		{"turn_began", v0.Event, session.TurnBegan{}},
		{"model_asked", v0.None, session.ModelAsked{Call: "c", Model: "m", UpTo: 3}},
		{"model_answered", v0.Event, session.ModelAnswered{
			Call: "c", Text: "Which port should I use?", Final: true, Totals: totals, Usage: session.Usage{Input: 2000, Output: 100, Window: 200000},
		}},
		{"model_answered_calls", v0.None, session.ModelAnswered{Text: "Let me look.", ToolCalls: []session.ToolCall{{ID: "call_7", Name: "think"}}}},
		{"model_answered_summary", v0.None, session.ModelAnswered{Text: "What happened so far: …", Purpose: session.ForSummary}},
		{"model_answered_cut", v0.Event, session.ModelAnswered{Text: "The first of many", Cut: true, Totals: totals}},
		{"model_answered_nothing", v0.None, session.ModelAnswered{Reasoning: "hm"}},
		{"model_failed", v0.Status, session.ModelFailed{Call: "c", Class: "auth", Message: "The provider refused the key."}},
		{"model_failed_rate", v0.Status, session.ModelFailed{Call: "c", Class: "rate", Message: "Too many requests."}},
		{"model_failed_retried", v0.Status, session.ModelFailed{Call: "c", Class: "overload", Message: "The model is busy.", Retried: true}},
		{"model_failed_context", v0.Status, session.ModelFailed{Call: "c", Class: "context", Message: "The conversation is too long for the model."}},
		{"model_failed_cancelled", v0.None, session.ModelFailed{Call: "c", Class: "cancelled"}},
		{"model_failed_interrupted", v0.Event, session.ModelFailed{Call: "c", Class: "cancelled", Message: "Interrupted by pause.", Text: "As I was say"}},
		{"model_failed_owner_lost", v0.None, session.ModelFailed{Call: "c", Class: "owner_lost"}},
		{"command_typed", v0.Event, session.CommandTyped{Command: "ls -l \"a b\""}},
		{"command_ended", v0.Event, session.CommandEnded{Cause: 13, Command: "ls", Outcome: session.Succeeded, Output: "a\nb\n",
			Details: json.RawMessage(`{"exit_code":0,"pid":7,"username":"me","hostname":"box","working_dir":"/workspace","suffix":"\n[The command completed with exit code 0.]"}`)}},
		{"command_ended_cancelled", v0.Event, session.CommandEnded{Cause: 13, Command: "sleep 99", Outcome: session.Cancelled, Output: "Interrupted: stopped"}},
		{"approval_asked", v0.Event, session.ApprovalAsked{ID: "call_7", Reason: "It deletes files."}},
		{"approval_asked_told", v0.None, session.ApprovalAsked{ID: "call_7", Reason: "It deletes files.", Told: true}},
		{"approval_asked_deadline", v0.Event, session.ApprovalAsked{ID: "call_7", Pattern: "execute_bash:ls *", Deadline: moment, Default: true}},
		{"approval_given_edited", v0.Event, session.ApprovalGiven{ID: "call_7", Approved: true, Args: json.RawMessage(`{"command":"ls"}`), Always: "execute_bash:ls *"}},
		{"approval_given_late", v0.Event, session.ApprovalGiven{ID: "call_7", Reason: "No decision in time.", Late: true}},
		{"approval_given_default", v0.Event, session.ApprovalGiven{ID: "call_7", Approved: true, Late: true}},
		{"approval_given_yes", v0.Event, session.ApprovalGiven{ID: "call_7", Approved: true}},
		{"approval_given_no", v0.Event, session.ApprovalGiven{ID: "call_7", Reason: "Not on main."}},
		{"condensed", v0.Event, session.Condensed{From: 5, To: 12, Summary: "USER_CONTEXT: …"}},
		{"condensed_no_summary", v0.Event, session.Condensed{From: 5, To: 12}},
		{"state_changed", v0.Event, session.StateChanged{State: session.AgentRateLimited, Reason: "Waiting for the provider."}},
		{"turn_ended", v0.Event, session.TurnEnded{UpTo: 13, State: session.AgentFinished}},
		{"turn_ended_error", v0.Event, session.TurnEnded{
			UpTo: 13, State: session.AgentError, ErrorID: "STATUS$ERROR_LLM_AUTHENTICATION", Reason: "The provider refused the key.",
		}},
		{"turn_ended_error_id", v0.Event, session.TurnEnded{UpTo: 13, State: session.AgentError, ErrorID: "STATUS$ERROR"}},
		{"pause_requested", v0.Status, session.PauseRequested{}},
		{"paused", v0.Event, session.Paused{}},
		{"resumed", v0.Event, session.Resumed{}},
		{"stopped", v0.Event, session.Stopped{Reason: "Idle for a day."}},
		{"start_requested", v0.Event, session.StartRequested{}},
		{"failed", v0.Event, session.Failed{ID: "STATUS$ERROR_RUNTIME_DISCONNECTED", Reason: "The sandbox did not start."}},
		{"titled", v0.Status, session.Titled{Title: "Print the date"}},
		{"request_opened", v0.Status, session.RequestOpened{
			Provider: "github", Repository: "octo/app", Number: 12, URL: "https://github.com/octo/app/pull/12", Title: "Fix it", Source: "fix", Target: "main",
		}},
		{"request_opened_merge", v0.Status, session.RequestOpened{Provider: "gitlab", Repository: "octo/sub/app", Number: 3, URL: "https://gitlab.com/octo/sub/app/-/merge_requests/3"}},
		{"noted", v0.Status, session.Noted{ID: "STATUS$LLM_RETRY", Message: "Trying again in 2 s."}},
		{"noted_error", v0.Status, session.Noted{ID: "STATUS$ERROR", Message: "The tool server at example.org did not answer.", Error: true}},
		{"deleted", v0.None, session.Deleted{}},
	}
}

func callCases() []oneCase {
	silent := called("finish", `{"message":"Implemented and tested."}`)
	silent.Thought = ""
	return []oneCase{
		{"call_run", v0.Event, called("execute_bash", `{"command":"make test","is_input":"false","timeout":300,"security_risk":"LOW"}`)},
		{"call_run_awaits", v0.Event, awaiting(called("execute_bash", `{"command":"rm -r build"}`))},
		{"call_read_awaits", v0.Event, awaiting(called("str_replace_editor", `{"command":"view","path":"/workspace/a"}`))},
		{"call_edit_awaits", v0.Event, awaiting(called("str_replace_editor", `{"command":"create","path":"/workspace/a","file_text":"x"}`))},
		{"call_browse_awaits", v0.Event, awaiting(called("browser", `{"code":"goto('http://localhost:8000')"}`))},
		{"call_mcp_awaits", v0.Event, awaiting(called("tavily-search", `{"query":"go"}`))},
		// What a model writes cannot hide what it does.
		{"call_run_hidden", v0.Event, called("execute_bash", `{"command":"ls","hidden":true,"confirmation_state":"confirmed"}`)},
		{"call_delegate_awaits", v0.Event, awaiting(called("delegate", `{"agent":"BrowsingAgent","inputs":{"task":"buy it"}}`))},
		{"call_run_ipython_awaits", v0.Event, awaiting(called("execute_ipython_cell", `{"code":"1+1"}`))},
		{"call_run_input", v0.Event, called("execute_bash", `{"command":"C-c","is_input":true}`)},
		{"call_run_bad_arguments", v0.Event, called("execute_bash", `"{\"command\": ls"`)},
		{"call_run_wrong_types", v0.Event, called("execute_bash", `{"command":["ls"],"is_input":1,"timeout":"soon"}`)},
		{"call_run_ipython", v0.Event, called("execute_ipython_cell", `{"code":"1+1"}`)},
		{"call_read", v0.Event, called("str_replace_editor", `{"command":"view","path":"/workspace/app/main.go","view_range":[1, 40]}`)},
		{"call_edit", v0.Event, called("str_replace_editor", `{"command":"str_replace","path":"/workspace/app/main.go","old_str":"foo","new_str":""}`)},
		{"call_edit_insert", v0.Event, called("str_replace_editor", `{"command":"insert","path":"/workspace/a","new_str":"x","insert_line":3}`)},
		{"call_edit_draft", v0.Event, called("edit_file", `{"path":"/workspace/a","content":"x\n","start":2}`)},
		{"call_think", v0.Event, called("think", `{"thought":"The bug is in the parser."}`)},
		{"call_finish", v0.Event, called("finish", `{"message":"Implemented and tested."}`)},
		{"call_finish_silent", v0.Event, silent},
		{"call_browse_interactive", v0.Event, called("browser", `{"code":"goto('http://localhost:8000')"}`)},
		{"call_browse", v0.Event, called("browse", `{"url":"http://localhost:8000"}`)},
		{"call_fetch", v0.Event, called("fetch", `{"url":"http://localhost:8000"}`)},
		{"call_task_tracking", v0.Event, called("task_tracker",
			`{"command":"plan","task_list":[{"id":"1","title":"Write test","status":"in_progress"},{"id":2,"title":"Fix","status":"todo","notes":"n"}]}`)},
		{"call_task_tracking_view", v0.Event, called("task_tracker", `{"command":"view"}`)},
		{"call_delegate", v0.Event, called("delegate", `{"agent":"BrowsingAgent","inputs":{"task":"find the price"}}`)},
		{"call_condensation_request", v0.Event, called("request_condensation", ``)},
		{"call_mcp", v0.Event, called("tavily-search", `{"query":"go 1.26", "limit":3}`)},
		{"call_mcp_no_arguments", v0.Event, called("ping", ``)},
	}
}

func resultCases() []oneCase {
	const run = `{"command":"make test"}`
	const edit = `{"command":"str_replace","path":"/workspace/app/main.go","old_str":"foo","new_str":"bar"}`
	const exit1 = `{"exit_code":2,"pid":71,"username":"agent","hostname":"b1c2","working_dir":"/workspace/app",` +
		`"py_interpreter_path":"/usr/bin/python3","suffix":"\n[The command completed with exit code 2.]"}`
	const page = `{"url":"http://localhost:8000/","screenshot":"data:image/png;base64,iVBO","screenshot_path":"/workspace/.browser_screenshots/x.png",` +
		`"open_pages_urls":["http://localhost:8000/"],"axtree_object":{"nodes":[]},"last_browser_action_error":"timeout"}`
	return []oneCase{
		{"result_run", v0.Event, returned("execute_bash", run, "ok\n", `{"exit_code":0,"hidden":true}`)},
		{"result_run_bare", v0.Event, returned("execute_bash", ``, "ok\n", ``)},
		{"result_run_failed", v0.Event, ended(returned("execute_bash", run, "FAIL\n", exit1), session.FailedRun)},
		{"result_run_refused", v0.Event, ended(returned("execute_bash", run, "Missing required argument …", ``), session.FailedRun)},
		{"result_run_running", v0.Event, returned("execute_bash", run, "…", `{"exit_code":-1}`)},
		{"result_cancelled", v0.Event, ended(returned("execute_bash", run, "Interrupted by stop.", ``), session.Cancelled)},
		{"result_interrupted", v0.Event, partial(ended(returned("execute_bash", run, "ok 1\n[Interrupted by stop; the output ends here.]", ``), session.Cancelled))},
		{"result_interrupted_tool", v0.Event, partial(ended(returned("some_tool", run, "half", ``), session.Cancelled))},
		{"result_cancelled_silent", v0.Event, ended(returned("finish", ``, "", ``), session.Cancelled)},
		{"result_rejected", v0.Event, ended(returned("execute_bash", run, "", ``), session.Rejected)},
		{"result_unknown", v0.Event, ended(returned("execute_bash", run, "The sandbox is gone.", ``), session.Unknown)},
		{"result_run_ipython", v0.Event, returned("execute_ipython_cell", `{"code":"1+1"}`, "2\n", `{"image_urls":["data:image/png;base64,iVBO"]}`)},
		{"result_read", v0.Event, returned("str_replace_editor", `{"command":"view","path":"/workspace/app/main.go"}`, "     1\tpackage main", ``)},
		{"result_edit", v0.Event, returned("str_replace_editor", edit, "The file has been edited.",
			`{"prev_exist":true,"old_content":"foo\n","new_content":"bar\n","diff":"--- a\n+++ b\n"}`)},
		{"result_edit_create", v0.Event, returned("str_replace_editor", `{"command":"create","path":"/workspace/a","file_text":""}`, "Created.", ``)},
		{"result_edit_bare", v0.Event, returned("str_replace_editor", ``, "Edited.", `{"path":"/workspace/a","new_content":"x"}`)},
		{"result_edit_failed", v0.Event, ended(returned("str_replace_editor", edit, "ERROR: old_str was not found.", ``), session.FailedRun)},
		{"result_edit_draft", v0.Event, returned("edit_file", `{"path":"/workspace/a","content":"x"}`, "Edited.", ``)},
		{"result_think", v0.Event, returned("think", `{"thought":"x"}`, "", ``)},
		{"result_finish", v0.None, returned("finish", `{"message":"Done."}`, "", ``)},
		{"result_condensation_request", v0.None, returned("request_condensation", ``, "", ``)},
		{"result_browse_interactive", v0.Event, returned("browser", `{"code":"goto('http://localhost:8000')"}`, "[Current URL: http://localhost:8000/]", page)},
		{"result_browse_failed", v0.Event, ended(returned("browser", `{"code":"click('1')"}`, "timeout", page), session.FailedRun)},
		{"result_browse", v0.Event, returned("fetch", `{"url":"http://localhost:8000"}`, "Hello", ``)},
		{"result_task_tracking", v0.Event, returned("task_tracker", `{"command":"view"}`, "One task.",
			`{"task_list":[{"id":"1","title":"Write test","status":"in_progress","notes":""}]}`)},
		{"result_task_tracking_plan", v0.Event, returned("task_tracker", `{"command":"plan","task_list":[{"id":"1","title":"Fix","status":"done"}]}`, "Planned.", ``)},
		{"result_delegate", v0.Event, returned("delegate", `{"agent":"BrowsingAgent"}`, "BrowsingAgent finishes task with 42", `{"outputs":{"content":"42"}}`)},
		{"result_mcp", v0.Event, returned("tavily-search", `{"query":"go"}`, "hello",
			`{"result":{"meta":null,"content":[{"type":"text","text":"hello"}],"isError":false}}`)},
		{"result_mcp_text", v0.Event, returned("tavily-search", `{"query":"go"}`, "hello \"you\"", ``)},
		{"result_mcp_failed", v0.Event, ended(returned("tavily-search", ``, "no", `{"result":{"isError":true,"error":"no","content":[]}}`), session.FailedRun)},
		{"result_mcp_refused", v0.Event, ended(returned("tavily-search", ``, "", ``), session.FailedRun)},
	}
}

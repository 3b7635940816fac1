package httpapi

import (
	"strings"
)

const hidden = `"` + canary + `"`

// malformedSettings is what can be wrong with each settings field.
func malformedSettings() []bad {
	var out []bad
	for _, name := range []string{"language", "agent", "security_analyzer", "llm_model", "llm_api_key", "llm_base_url", "sandbox_base_container_image",
		"sandbox_runtime_container_image", "search_api_key", "sandbox_api_key", "email", "git_user_name", "git_user_email"} {
		out = append(out, field(toSettings, name, `5`, "Must be a string"), field(toSettings, name, `{"x":`+hidden+`}`, "Must be a string"),
			field(toSettings, name, `[`+hidden+`]`, "Must be a string"))
	}
	for _, name := range []string{"confirmation_mode", "user_consents_to_analytics", "email_verified", "enable_default_condenser", "enable_sound_notifications",
		"enable_proactive_conversation_starters", "enable_solvability_analysis"} {
		out = append(out, field(toSettings, name, `"true"`, "true or false"), field(toSettings, name, `1`, "true or false"), field(toSettings, name, hidden, "true or false"))
		if strings.HasPrefix(name, "enable_") {
			out = append(out, field(toSettings, name, `null`, "Must not be null"))
		}
	}
	one := func(name, value, msg string) { out = append(out, field(toSettings, name, value, msg)) }
	for _, v := range []string{`"5"`, `5.0`, `5e0`, `1.5`, `true`, `{}`, hidden, `9223372036854775808`, `1E2`} {
		one("max_iterations", v, "Must be an integer")
	}
	one("max_iterations", `1e400`, "too large")
	one("max_iterations", `0`, "at least 1")
	one("max_iterations", `-1`, "at least 1")
	one("max_iterations", `100001`, "at most 100000")
	for _, v := range []string{`3`, `0`, `-1`, `16`} {
		one("remote_runtime_resource_factor", v, "one of 1, 2, 4, 8")
	}
	one("remote_runtime_resource_factor", `1.0`, "Must be an integer")
	one("remote_runtime_resource_factor", `"1"`, "Must be an integer")
	one("max_budget_per_task", `"5"`, "Must be a number")
	one("max_budget_per_task", hidden, "Must be a number")
	one("max_budget_per_task", `-0.01`, "at least 0")
	one("max_budget_per_task", `1e400`, "too large")
	one("max_budget_per_task", `-1e400`, "too large")

	one("language", `"e"`, "language tag")
	one("language", `"../`+canary+`"`, "language tag")
	one("language", `"`+strings.Repeat("a", 36)+`"`, "at most 35")
	one("agent", hidden, "CodeActAgent")
	one("security_analyzer", hidden, "llm, rules")
	one("llm_model", `"a `+canary+`"`, "without spaces")
	one("llm_model", `"`+strings.Repeat("m", 257)+`"`, "at most 256")
	one("llm_api_key", `"`+canary+`\nX-Evil: 1"`, "line break")
	one("llm_api_key", `"   "`, "blank")
	one("llm_api_key", `"**********"`, "nothing is stored")
	one("search_api_key", `"`+canary+`\u0000"`, "NUL")
	one("sandbox_api_key", `"`+strings.Repeat("k", 8193)+`"`, "longer than")
	for _, v := range []string{`"ftp://` + canary + `"`, `"file:///etc/passwd"`, `"javascript:alert(1)"`} {
		one("llm_base_url", v, "")
	}
	one("llm_base_url", `"localhost:11434"`, "")
	one("llm_base_url", `"https://user:`+canary+`@host/"`, "user name or password")
	one("llm_base_url", `"http://host:99999/"`, "port")
	one("llm_base_url", `"https://"`, "complete URL")
	one("sandbox_base_container_image", `"Not An Image"`, "image reference")
	one("sandbox_base_container_image", `"--privileged"`, "image reference")
	one("sandbox_runtime_container_image", `"a:b:c"`, "image reference")
	one("email", `"`+canary+`"`, "e-mail address")
	one("email", `"a@b\r\nBcc: x@y"`, "e-mail address")
	one("git_user_name", `"Ada <`+canary+`>"`, "git accepts")
	one("git_user_name", `"a\nb"`, "one line")
	one("git_user_email", `"a b@c"`, "without spaces")
	out = append(out, malformedSecrets()...)
	return out
}

func malformedSecrets() []bad {
	in := func(value, loc, msg string) bad {
		return post(toSettings, "secrets_store "+clip(value), `{"secrets_store":`+value+`}`, "body.secrets_store"+loc, msg)
	}
	return []bad{
		in(hidden, "", "an object"), in(`[]`, "", "an object"), in(`5`, "", "an object"),
		in(`{"tokens":{"github":`+hidden+`}}`, ".tokens", "Unknown field"),
		in(`{"provider_tokens":[`+hidden+`]}`, ".provider_tokens", "object"),
		in(`{"provider_tokens":{"github":5}}`, ".provider_tokens.github", "an object or a string"),
		in(`{"provider_tokens":{"github":[`+hidden+`]}}`, ".provider_tokens.github", "an object or a string"),
		in(`{"provider_tokens":{"github":{"tokn":`+hidden+`}}}`, ".provider_tokens.github.tokn", "Unknown field"),
		in(`{"provider_tokens":{"github":{"token":5}}}`, ".provider_tokens.github.token", "string"),
		in(`{"provider_tokens":{"sourceforge":`+hidden+`}}`, ".provider_tokens.sourceforge", "github"),
		in(`{"provider_tokens":{"github":{"token":"x","host":"a/`+canary+`"}}}`, ".provider_tokens.github.host", "host name"),
		in(`{"provider_tokens":{"github":{"token":"x","host":"ftp://h"}}}`, ".provider_tokens.github.host", "host name"),
		in(`{"provider_tokens":{"github":"**********"}}`, ".provider_tokens.github.token", "nothing is stored"),
		in(`{"custom_secrets":`+hidden+`}`, ".custom_secrets", "object"),
		in(`{"custom_secrets":{"1BAD":`+hidden+`}}`, ".custom_secrets.1BAD", "valid environment variable name"),
		in(`{"custom_secrets":{"A B":`+hidden+`}}`, ".custom_secrets.A B", "valid environment variable name"),
		in(`{"custom_secrets":{"":`+hidden+`}}`, ".custom_secrets.", "valid environment variable name"),
		in(`{"custom_secrets":{"GOOD":{"secret":5}}}`, ".custom_secrets.GOOD.secret", "string"),
		in(`{"custom_secrets":{"GOOD":{"value":`+hidden+`}}}`, ".custom_secrets.GOOD.value", "Unknown field"),
		in(`{"custom_secrets":{"GOOD":"`+canary+`\u0000"}}`, ".custom_secrets.GOOD", "NUL"),
	}
}

// malformedTools is what can be wrong with mcp_config, wherever it stands.
func malformedTools(path string) []bad {
	in := func(value, loc, msg string) bad {
		return post(path, "mcp_config "+clip(value), `{"mcp_config":`+value+`}`, "body.mcp_config"+loc, msg)
	}
	stdio := func(entry, loc, msg string) bad {
		return in(`{"stdio_servers":[`+entry+`]}`, ".stdio_servers.0"+loc, msg)
	}
	return []bad{
		in(hidden, "", "an object"), in(`[]`, "", "an object"),
		in(`{"servers":[`+hidden+`]}`, ".servers", "Unknown field"),
		in(`{"sse_servers":{}}`, ".sse_servers", "list"),
		in(`{"sse_servers":null}`, ".sse_servers", "Must not be null"),
		in(`{"sse_servers":[5]}`, ".sse_servers.0", "an object or a string"),
		in(`{"sse_servers":[null]}`, ".sse_servers.0", "Must not be null"),
		in(`{"sse_servers":[{"api_key":`+hidden+`}]}`, ".sse_servers.0.url", "required"),
		in(`{"sse_servers":[{"url":5,"api_key":`+hidden+`}]}`, ".sse_servers.0.url", "string"),
		in(`{"sse_servers":[{"url":"ftp://h/"}]}`, ".sse_servers.0.url", "http"),
		in(`{"sse_servers":["javascript:alert(1)"]}`, ".sse_servers.0.url", ""),
		in(`{"shttp_servers":[{"url":"https://h/","api_key":{"k":`+hidden+`}}]}`, ".shttp_servers.0.api_key", "string"),
		in(`{"shttp_servers":[{"url":"https://h/","api_key":"`+canary+`\r\nX: y"}]}`, ".shttp_servers.0.api_key", "line break"),
		in(`{"shttp_servers":[{"url":"https://h/","api_key":"**********"}]}`, ".shttp_servers.0.api_key", "nothing is stored"),
		in(`{"shttp_servers":[{"url":"https://h/","key":`+hidden+`}]}`, ".shttp_servers.0.key", "Unknown field"),
		in(`{"shttp_servers":[{"url":"https://h/","timeout":0}]}`, ".shttp_servers.0.timeout", "at least 1"),
		in(`{"sse_servers":[{"url":"https://h/","timeout":5}]}`, ".sse_servers.0.timeout", "Only shttp_servers"),
		in(`{"sse_servers":["https://h/","https://h/"]}`, ".sse_servers.1.url", "twice"),
		in(`{"sse_servers":`+numbered(101, `"https://h/%d"`)+`}`, ".sse_servers", "at most 100"),
		in(`{"sse_servers":`+numbered(51, `"https://h/%d"`)+`,"shttp_servers":`+numbered(50, `"https://h/s%d"`)+`}`, "", "limit is 100"),
		in(`{"stdio_servers":`+numbered(101, `{"name":"n%d","command":"c"}`)+`}`, ".stdio_servers", "at most 100"),
		stdio(hidden, "", "object"), stdio(`{"command":"c"}`, ".name", "required"), stdio(`{"name":"n"}`, ".command", "required"),
		stdio(`{"name":"a b","command":"c"}`, ".name", ""), stdio(`{"name":"../x","command":"c"}`, ".name", ""),
		stdio(`{"name":"n","command":""}`, ".command", "command is missing"),
		stdio(`{"name":"n","command":"npx -y `+canary+`"}`, ".command", "must not contain spaces"),
		stdio(`{"name":"n","command":"a\u0000b"}`, ".command", "NUL"),
		stdio(`{"name":"n","command":5}`, ".command", "string"),
		stdio(`{"name":"n","command":"c","args":5}`, ".args", "a list or a string"),
		stdio(`{"name":"n","command":"c","args":[5]}`, ".args.0", "string"),
		stdio(`{"name":"n","command":"c","args":"'`+canary+`"}`, ".args", "not closed"),
		stdio(`{"name":"n","command":"c","env":[]}`, ".env", "an object or a string"),
		stdio(`{"name":"n","command":"c","env":{"A":5}}`, ".env.A", "string"),
		stdio(`{"name":"n","command":"c","env":{"A=B":`+hidden+`}}`, ".env.A=B", "valid environment variable name"),
		stdio(`{"name":"n","command":"c","env":"`+canary+`"}`, ".env", "NAME=value"),
		stdio(`{"name":"n","command":"c","cwd":`+hidden+`}`, ".cwd", "Unknown field"),
		in(`{"stdio_servers":[{"name":"n","command":"c"},{"name":"n","command":"d"}]}`, ".stdio_servers.1.name", "twice"),
	}
}

package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/openapi.json anew")

// The golden copy makes every change of the contract visible in review.
func TestOpenAPIGolden(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "openapi.json")
	spec := New(Config{Server: Server{Version: "test"}}).Spec()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, spec, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; make openapi writes it", err)
	}
	if !bytes.Equal(golden, spec) {
		t.Errorf("the contract has changed (%s). If that is wanted, run make openapi and look at the difference.", firstDifference(golden, spec))
	}
	if again := New(Config{Server: Server{Version: "test"}}).Spec(); !bytes.Equal(spec, again) {
		t.Error("the document is not the same twice")
	}
}

func firstDifference(a, b []byte) string {
	x, y := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d: %q became %q", i+1, strings.TrimSpace(x[i]), strings.TrimSpace(y[i]))
		}
	}
	return fmt.Sprintf("%d lines became %d", len(x), len(y))
}

// document is the OpenAPI document as any reader of it sees it.
func document(t testing.TB) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(New(Config{Server: Server{Version: "test"}}).Spec(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// at walks into the document.
func at(t testing.TB, v any, path ...string) any {
	t.Helper()
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok || m[name] == nil {
			t.Fatalf("the document has no %s in %v", name, path)
		}
		v = m[name]
	}
	return v
}

func TestOpenAPIIsSound(t *testing.T) {
	doc := document(t)
	if doc["openapi"] != "3.1.0" {
		t.Errorf("openapi is %v", doc["openapi"])
	}
	at(t, doc, "info", "title")
	at(t, doc, "info", "version")
	ids, params := map[string]string{}, regexp.MustCompile(`\{([^}]*)\}`)
	for path, item := range at(t, doc, "paths").(map[string]any) {
		if !strings.HasPrefix(path, "/") {
			t.Errorf("path %q", path)
		}
		for method, o := range item.(map[string]any) {
			here := strings.ToUpper(method) + " " + path
			op := o.(map[string]any)
			id, _ := op["operationId"].(string)
			if ids[id] != "" || id == "" {
				t.Errorf("%s: operationId %q, as %s", here, id, ids[id])
			}
			ids[id] = here
			if op["summary"] == nil || len(op["responses"].(map[string]any)) < 2 {
				t.Errorf("%s: no summary or no responses", here)
			}
			declared := map[string]bool{}
			list, _ := op["parameters"].([]any)
			for _, p := range list {
				m := p.(map[string]any)
				if ref, ok := m["$ref"].(string); ok {
					m = pointed(t, doc, ref).(map[string]any)
				}
				name := m["in"].(string) + " " + m["name"].(string)
				if declared[name] || m["schema"] == nil || m["in"] == "path" && m["required"] != true {
					t.Errorf("%s: parameter %v", here, m)
				}
				declared[name] = true
			}
			for _, m := range params.FindAllStringSubmatch(path, -1) {
				if !declared["path "+m[1]] {
					t.Errorf("%s: {%s} is not declared", here, m[1])
				}
			}
		}
	}
	resolveAll(t, doc, doc, "#")
	for _, rt := range new(Handler).table() {
		want := rt.Method + " " + strings.ReplaceAll(rt.Path, "{$}", "")
		if ids[rt.ID] != want {
			t.Errorf("route %s is documented as %q", want, ids[rt.ID])
		}
		op := at(t, doc, "paths", strings.ReplaceAll(rt.Path, "{$}", ""), strings.ToLower(rt.Method)).(map[string]any)
		if secured := op["security"] != nil; secured == rt.Public {
			t.Errorf("%s: security is documented: %t", want, secured)
		}
		if !rt.Public {
			at(t, op, "responses", "401")
		}
	}
	if len(ids) != len(new(Handler).table()) {
		t.Errorf("%d operations, %d routes", len(ids), len(new(Handler).table()))
	}
}

// resolveAll follows every reference.
func resolveAll(t *testing.T, doc map[string]any, v any, where string) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			if pointed(t, doc, ref) == nil {
				t.Errorf("%s: %s leads nowhere", where, ref)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			resolveAll(t, doc, v[name], where+"/"+name)
		}
	case []any:
		for i, x := range v {
			resolveAll(t, doc, x, fmt.Sprint(where, "/", i))
		}
	}
}

// pointed is what a reference leads to.
func pointed(t *testing.T, doc map[string]any, ref string) any {
	t.Helper()
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		t.Fatalf("%s is not within the document", ref)
	}
	return at(t, doc, strings.Split(path, "/")...)
}

func TestOpenAPIOverHTTP(t *testing.T) {
	r := newRig(t)
	if a := r.do("GET", "/openapi.json", "").want(t, 200); a.body != string(r.api.Spec()) || a.header.Get("Content-Type") != "application/json" {
		t.Error("another document is served")
	}
	docs := r.do("GET", "/docs", "").want(t, 200)
	for _, rt := range new(Handler).table() {
		if !strings.Contains(docs.body, `id="`+rt.ID+`"`) {
			t.Errorf("/docs does not show %s", rt.ID)
		}
	}
	for _, name := range contractFields(settingsContract) {
		if !strings.Contains(docs.body, "<code>"+name+"</code>") {
			t.Errorf("/docs does not show %s", name)
		}
	}
}

// The founding contract, copied by hand: name, type ("?" accepts null, "!" is a
// password, "[]" a list), default.
const settingsContract = `
language string?
agent string?
max_iterations integer?
security_analyzer string?
confirmation_mode boolean?
llm_model string?
llm_api_key string?!
llm_base_url string?
remote_runtime_resource_factor integer?
secrets_store UserSecrets
enable_default_condenser boolean true
enable_sound_notifications boolean false
enable_proactive_conversation_starters boolean true
enable_solvability_analysis boolean true
user_consents_to_analytics boolean?
sandbox_base_container_image string?
sandbox_runtime_container_image string?
mcp_config MCPConfig
search_api_key string?!
sandbox_api_key string?!
max_budget_per_task number?
email string?
email_verified boolean?
git_user_name string?
git_user_email string?`

const conversationContract = `
repository string?
git_provider enum? github,gitlab,bitbucket,enterprise_sso
selected_branch string?
initial_user_msg string?
image_urls string[]?
replay_json string?
suggested_task SuggestedTask
create_microagent CreateMicroagent
conversation_instructions string?
mcp_config MCPConfig
conversation_id string`

const partsContract = `
UserSecrets.provider_tokens object
UserSecrets.custom_secrets object
MCPConfig.sse_servers MCPServer[]
MCPConfig.stdio_servers StdioServer[]
MCPConfig.shttp_servers MCPServer[]
MCPServer.url string
MCPServer.api_key string?!
StdioServer.name string
StdioServer.command string
StdioServer.args string[]
StdioServer.env object
SuggestedTask.git_provider enum github,gitlab,bitbucket,enterprise_sso
SuggestedTask.task_type enum MERGE_CONFLICTS
SuggestedTask.repo string
SuggestedTask.issue_number integer
SuggestedTask.title string
CreateMicroagent.repo string
CreateMicroagent.git_provider enum? github,gitlab,bitbucket,enterprise_sso
CreateMicroagent.title string?`

const responseContract = `
status string
conversation_id string
message string?
conversation_status enum? STARTING,RUNNING,STOPPED`

func contractFields(contract string) []string {
	var out []string
	for line := range strings.Lines(strings.TrimSpace(contract)) {
		out = append(out, strings.Fields(line)[0])
	}
	return out
}

// additions are fields beyond the founding contract: what the front end of 0.59 sends, and one choice in place of two fields.
var additions = map[string][]string{"SettingsInput": {"condenser_max_size", "approval_mode"}}

func TestOpenAPIMatchesTheContract(t *testing.T) {
	doc := document(t)
	schemas := at(t, doc, "components", "schemas").(map[string]any)
	body := func(path string) string {
		ref := at(t, doc, "paths", path, "post", "requestBody", "content", "application/json", "schema", "$ref").(string)
		return strings.TrimPrefix(ref, "#/components/schemas/")
	}
	exact := func(schema, contract string) {
		props := at(t, schemas, schema, "properties").(map[string]any)
		want := append(contractFields(contract), additions[schema]...)
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(props)); !slices.Equal(got, want) {
			t.Errorf("%s has %v, the contract %v", schema, got, want)
		}
		for line := range strings.Lines(strings.TrimSpace(contract)) {
			f := strings.Fields(line)
			holds(t, schema+"."+f[0], props[f[0]], f[1], strings.Join(f[2:], ""))
		}
	}
	exact(body("/api/settings"), settingsContract)
	exact(body("/api/conversations"), conversationContract)
	if req := schemas[body("/api/settings")].(map[string]any)["required"]; req != nil {
		t.Errorf("settings: required %v", req)
	}
	if req := schemas[body("/api/conversations")].(map[string]any)["required"]; req != nil {
		t.Errorf("conversations: required %v", req)
	}
	for line := range strings.Lines(strings.TrimSpace(partsContract)) {
		f := strings.Fields(line)
		schema, name, _ := strings.Cut(f[0], ".")
		holds(t, f[0], at(t, schemas, schema, "properties", name), f[1], strings.Join(f[2:], ""))
	}
	answer := strings.TrimPrefix(at(t, doc, "paths", "/api/conversations", "post", "responses", "200", "content", "application/json", "schema", "$ref").(string), "#/components/schemas/")
	exact(answer, responseContract)
	required, _ := schemas[answer].(map[string]any)["required"].([]any)
	for _, name := range []string{"status", "conversation_id"} {
		if !slices.Contains(required, any(name)) {
			t.Errorf("%s of the answer is not required", name)
		}
	}
	scheme := at(t, doc, "components", "securitySchemes", "key").(map[string]any)
	if scheme["in"] != "header" || scheme["name"] != "X-Session-API-Key" {
		t.Errorf("%v", scheme)
	}
}

// shape is what a schema says, in the words of the contract tables.
type shape struct {
	types    []string
	ref      string
	format   string
	items    any
	enum     []string
	fallback any
}

func shapeOf(v any) shape {
	var s shape
	m, _ := v.(map[string]any)
	alternatives, _ := m["anyOf"].([]any)
	for _, a := range alternatives {
		in := shapeOf(a)
		s.types = append(s.types, in.types...)
		if in.ref != "" {
			s.ref = in.ref
		}
		if in.items != nil {
			s.items = in.items
		}
	}
	if ref, ok := m["$ref"].(string); ok {
		s.ref = strings.TrimPrefix(ref, "#/components/schemas/")
	}
	switch t := m["type"].(type) {
	case string:
		s.types = append(s.types, t)
	case []any:
		for _, x := range t {
			s.types = append(s.types, fmt.Sprint(x))
		}
	}
	for _, e := range anyList(m["enum"]) {
		if e != nil {
			s.enum = append(s.enum, fmt.Sprint(e))
		}
	}
	if m["items"] != nil {
		s.items = m["items"]
	}
	s.format, _ = m["format"].(string)
	s.fallback = m["default"]
	return s
}

func anyList(v any) []any { l, _ := v.([]any); return l }

// holds compares a documented field with a line of the contract.
func holds(t *testing.T, name string, documented any, kind, rest string) {
	t.Helper()
	s := shapeOf(documented)
	kind, secret := strings.CutSuffix(kind, "!")
	kind, null := strings.CutSuffix(kind, "?")
	kind, many := strings.CutSuffix(kind, "[]")
	has := func(typ string) bool { return slices.Contains(s.types, typ) }
	bad := func(what string) { t.Errorf("%s: %s: %v", name, what, documented) }
	if null && !has("null") {
		bad("null must be accepted")
	}
	if secret != (s.format == "password") {
		bad("password format")
	}
	switch {
	case many:
		if !has("array") {
			bad("a list is wanted")
		}
		if in := shapeOf(s.items); in.ref != kind && !slices.Contains(in.types, kind) {
			bad("a list of " + kind)
		}
	case kind == "enum":
		for _, v := range strings.Split(rest, ",") {
			if !slices.Contains(s.enum, v) {
				bad("lacks " + v)
			}
		}
		if n := len(strings.Split(rest, ",")); n > 1 && len(s.enum) != n {
			bad("has other values")
		}
	case strings.ToUpper(kind[:1]) == kind[:1]:
		if s.ref != kind {
			bad("wants " + kind)
		}
	default:
		if !has(kind) {
			bad("wants " + kind)
		}
		if !null && has("null") {
			bad("must not accept null")
		}
		if rest != "" && fmt.Sprint(s.fallback) != rest {
			bad("the default is " + rest)
		}
	}
}

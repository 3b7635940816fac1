package httpapi

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// malformedCreate is what can be wrong with a creation request, tools and repositories apart.
func malformedCreate() []bad {
	one := func(name, value, msg string) bad { return field(toCreate, name, value, msg) }
	task := func(change, loc, msg string) bad {
		body := `{"suggested_task":{"git_provider":"github","task_type":"OPEN_ISSUE","repo":"a/b","issue_number":5,"title":"t"}}`
		from, to, _ := strings.Cut(change, "=>")
		return post(toCreate, "suggested_task "+change, strings.Replace(body, from, to, 1), "body.suggested_task"+loc, msg)
	}
	out := []bad{
		one("repository", `5`, "string"), one("repository", `"`+strings.Repeat("a/b", 200)+`"`, "at most 500"),
		one("git_provider", `"svn"`, "github"), one("git_provider", `5`, "string"), one("git_provider", `"GitHub"`, "github"), one("git_provider", `""`, "github"),
		one("selected_branch", `[]`, "string"), one("initial_user_msg", `{"x":`+hidden+`}`, "string"), one("initial_user_msg", `"a\u0000b"`, "NUL"),
		one("conversation_instructions", `5`, "string"), one("conversation_instructions", `"a\u0000b"`, "NUL"),
		one("image_urls", hidden, "list"), one("image_urls", `{}`, "list"), one("image_urls", list(51, `"https://h/x.png"`), "at most 50"),
		one("replay_json", `[]`, "string"), one("replay_json", hidden, "trajectory"), one("replay_json", `"{}"`, "trajectory"), one("replay_json", `"[1]"`, "trajectory"),
		one("replay_json", `"[{\"a\":"`, "trajectory"), one("replay_json", `"[{}] x"`, "trajectory"),
		one("suggested_task", hidden, "an object"), one("suggested_task", `[]`, "an object"), one("create_microagent", hidden, "an object"),
		one("conversation_id", `null`, "Must not be null"), one("conversation_id", `5`, "string"), one("conversation_id", `""`, "not be empty"),
		one("conversation_id", `"`+strings.Repeat("a", 101)+`"`, "at most 100"), one("initial_msg", hidden, "Unknown field"), one("Repository", `"a/b"`, "Unknown field"),
		post(toCreate, "create_microagent without repo", `{"create_microagent":{}}`, "body.create_microagent.repo", "required"),
		post(toCreate, "create_microagent repo", `{"create_microagent":{"repo":"a/../b"}}`, "body.create_microagent.repo", "owner/name"),
		post(toCreate, "create_microagent title", `{"create_microagent":{"repo":"a/b","title":5}}`, "body.create_microagent.title", "string"),
		post(toCreate, "create_microagent extra", `{"create_microagent":{"repo":"a/b","x":`+hidden+`}}`, "body.create_microagent.x", "Unknown field"),
		task(`"github"=>"svn"`, ".git_provider", "github"), task(`"github"=>null`, ".git_provider", "null"), task(`"OPEN_ISSUE"=>"OPEN"`, ".task_type", "MERGE_CONFLICTS"),
		task(`"a/b"=>""`, ".repo", "not be empty"), task(`"a/b"=>"--upload-pack=x"`, ".repo", "owner/name"), task(`:5=>:"5"`, ".issue_number", "integer"),
		task(`:5=>:5.0`, ".issue_number", "integer"), task(`:5=>:-1`, ".issue_number", "at least 0"), task(`"issue_number":5,=>`, ".issue_number", "required"),
		task(`"title":"t"=>"title":5`, ".title", "string"), task(`"title"=>"titel"`, ".titel", "Unknown field"), task(`:"t"=>:"a\u0000"`, ".title", "NUL"),
	}
	for _, id := range []string{"..", ".", "a/b", `a\\b`, "a b", "ü", "a.b", "a%2fb", `a\u0000`, "a\\n", "-a?", "a;b", "a\\u202e"} {
		out = append(out, one("conversation_id", `"`+id+`"`, ""))
	}
	for _, u := range []string{"javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "ftp://h/x", "//h/x.png", "http://", "x", "", "http://h/a b", "http://h/\\u0000", "data:image/png;base64,aGVsbG8="} {
		out = append(out, post(toCreate, "image "+u, `{"image_urls":["https://h/ok.png","`+u+`"]}`, "body.image_urls.1", ""))
	}
	out = append(out, post(toCreate, "image 5", `{"image_urls":[5]}`, "body.image_urls.0", "string"), post(toCreate, "image null", `{"image_urls":[null]}`, "body.image_urls.0", "null"))
	return out
}

// malformedRepositories is names that git, a shell or a URL would take for something else.
func malformedRepositories() []bad {
	var out []bad
	for _, name := range []string{"--upload-pack=touch /tmp/x", "--upload-pack=x/y", "-x/y", "a/-b", "ext::sh -c x", "ext::sh/x", "file:///etc/passwd", "https://github.com/a/b",
		"git@github.com:a/b", "a", "a//b", "/a/b", "a/b/", "a/../b", "../a/b", "a/..", "a/.", "./a", "a b/c", "a/b?x=1", "a/b#c", "a/b%2e", `a\\b/c`, "a/b\\u0000", "a/b\\n", "ü/b",
		"a/b@c", "a:b/c", "~/x/..", "a/b..c", "a/b.git/../../c", "a/b;ls", "a/$(ls)", "a/`ls`", "host.example:8080/a/b"} {
		out = append(out, field(toCreate, "repository", `"`+name+`"`, ""))
	}
	for _, name := range []string{"--upload-pack=x", "-b", "--", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[b", `a\\b`, "x.lock", "@", "a@{0}", "refs/../x", "/a", "a/", "a//b",
		"a.", ".a", "a/.b", "a.lock/b", "a\\u0000b", "a\\nb", "a\\u007f"} {
		out = append(out, field(toCreate, "selected_branch", `"`+name+`"`, ""))
	}
	return out
}

func malformedKeys() []bad {
	one := func(name, value, msg string) bad { return field(toKeys, name, value, msg) }
	return []bad{
		one("user", `5`, "string"), one("user", `""`, "not be empty"), one("user", `"`+strings.Repeat("a", 65)+`"`, "at most 64"),
		one("name", `5`, "string"), one("name", `"`+strings.Repeat("n", 101)+`"`, ""), one("name", `"a\nb"`, "one line"), one("name", `"a\u0000"`, "NUL"),
		one("admin", `"true"`, "true or false"), one("admin", `1`, "true or false"), one("admin", `null`, "Must not be null"),
		one("expires", `720`, "string"), one("expires", `"soon"`, "duration"), one("expires", `"-1h"`, "duration"), one("expires", `"0s"`, "duration"),
		one("expires", `"9999999999999h"`, "duration"), one("key", hidden, "Unknown field"), one("scopes", `["admin"]`, "Unknown field"),
	}
}

func malformedPatch() []bad {
	one := func(body, loc, msg string) bad {
		return bad{name: clip(body), method: "PATCH", path: toOpen, body: body, status: 422, loc: loc, msg: msg}
	}
	return []bad{
		one(``, "body.title", "required"), one(`{}`, "body.title", "required"), one(`{"title":5}`, "body.title", "string"), one(`{"title":null}`, "body.title", "null"),
		one(`{"title":""}`, "body.title", "not be empty"), one(`{"title":"  \t "}`, "body.title", "not be blank"), one(`{"title":"`+strings.Repeat("ü", 201)+`"}`, "body.title", "at most 200"),
		one(`{"title":"a\u0000b"}`, "body.title", "NUL"), one(`{"title":"t","status":`+hidden+`}`, "body.status", "Unknown field"), one(`[]`, "body", "object"), one(`null`, "body", "null"),
		one(`{"title":"t"`, "body", "unexpected end"),
	}
}

// undecodable are images with the right signature that no model could be shown.
var undecodable = []struct{ name, url, says string }{
	{"the start of an image", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAf", "damaged or incomplete"},
	{"a damaged image", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkB89QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "damaged or incomplete"},
	{"an image that claims a lot", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUv//////////CAYAAADS9i4+AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "at most 50 megapixels"},
	{"a header alone", "data:image/gif;base64,R0lGODlh", "damaged or incomplete"},
	{"another type", "data:image/jpeg;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "labeled image/jpeg"},
	{"an unknown type", "data:image/x-foo;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "image/png, image/jpeg"},
}

func malformedImages() []bad {
	var out []bad
	for _, c := range undecodable {
		out = append(out, post(toCreate, c.name, `{"image_urls":["https://h/ok.png","`+c.url+`"]}`, "body.image_urls.1", c.says),
			post(toOpen+"/message", c.name, `{"message":"x","image_urls":["`+c.url+`"]}`, "body.image_urls.0", c.says),
			post(toOpen+"/events", c.name, `{"action":"message","args":{"content":"x","image_urls":["`+c.url+`"]}}`, "body.args.image_urls.0", c.says))
	}
	return out
}

func malformedMessages() []bad {
	path := toOpen + "/message"
	return []bad{
		post(path, "empty", ``, "body.message", "required"), field(path, "message", `5`, "string"), field(path, "message", `["`+canary+`"]`, "string"), field(path, "message", `null`, "null"),
		field(path, "message", `"a\u0000b"`, "NUL"), field(path, "message", `"`+strings.Repeat("m", 1<<20+1)+`"`, "at most 1048576"),
		post(path, "51 images", `{"message":"x","image_urls":`+list(51, `"https://h/x.png"`)+`}`, "body.image_urls", "at most 50"),
		post(path, "script image", `{"message":"x","image_urls":["javascript:1"]}`, "body.image_urls.0", "http"),
		post(path, "text as an image", `{"message":"x","image_urls":["data:image/png;base64,aGVsbG8="]}`, "body.image_urls.0", "PNG, JPEG, GIF or WebP"),
		post(path, "extra", `{"message":"x","role":`+hidden+`}`, "body.role", "Unknown field"),
	}
}

func malformedEvents() []bad {
	path := toOpen + "/events"
	one := func(body, loc, msg string) bad { return post(path, clip(body), body, loc, msg) }
	return []bad{
		one(`{}`, "body.action", "message"), one(`[]`, "body", "object"), one(`null`, "body", "null"), one(`{"action":5,"args":{}}`, "body.action", "message"),
		one(`{"action":"write","args":{"path":"`+canary+`"}}`, "body.action", "change_agent_state"), one(`{"action":"run","args":{"command":7}}`, "body.args.command", "string"), one(`{"action":"message"}`, "body.args", "args"),
		one(`{"action":"message","args":[]}`, "body.args", "object"), one(`{"action":"message","args":{}}`, "body.args.content", "content"),
		one(`{"action":"message","args":{"content":5}}`, "body.args.content", "string"), one(`{"action":"message","args":{"content":"a\u0000b"}}`, "body.args.content", "NUL"),
		one(`{"action":"message","args":{"content":"x","image_urls":["javascript:1"]}}`, "body.args.image_urls.0", ""),
		one(`{"action":"message","args":{"content":"x","role":`+hidden+`}}`, "body.args.role", "argument"),
		one(`{"action":"message","source":"agent","args":{"content":`+hidden+`}}`, "body.source", "assigns"), one(`{"action":"message","id":7,"args":{"content":"x"}}`, "body.id", "assigns"),
		one(`{"observation":"run","content":`+hidden+`}`, "body.action", "message"), one(`{"action":"message","x":`+hidden+`,"args":{"content":"x"}}`, "body.x", "only"),
		one(`{"action":"change_agent_state","args":{"agent_state":"finished"}}`, "body.args.agent_state", "running"),
		one(`{"action":"change_agent_state","args":{}}`, "body.args.agent_state", "running"), one(`{"action":"message","args":{"content":"`+canary+`"`, "body", "unexpected end"),
		one(`{"action":"message","action":"run","args":{}}`, "body", "duplicate name"),
	}
}

func malformedQueries() []bad {
	b64 := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	out := []bad{
		get(toCreate, "limit=0", "query.limit", "at least 1"), get(toCreate, "limit=101", "query.limit", "at most 100"), get(toCreate, "limit=-1", "query.limit", "at least 1"),
		get(toCreate, "limit=20&limit=30", "query.limit", "once"), get(toCreate, "status=BOGUS", "query.status", "STARTING"), get(toCreate, "status=running", "query.status", "STARTING"),
		get(toCreate, "conversation_trigger=x", "query.conversation_trigger", "gui"), get(toCreate, "query="+strings.Repeat("q", 201), "query.query", "at most 200"),
		get(toCreate, "limit=%zz", "query", "percent"), get(toCreate, "page_id=%zz", "query", "percent"),
		get(toOpen+"/events", "start_id=-1", "query.start_id", "at least 0"), get(toOpen+"/events", "start_id=x", "query.start_id", "integer"),
		get(toOpen+"/events", "end_id=x", "query.end_id", "integer"), get(toOpen+"/events", "end_id=-1", "query.end_id", "at least 0"),
		get(toOpen+"/events", "reverse=maybe", "query.reverse", "true or false"), get(toOpen+"/events", "limit=101", "query.limit", "at most 100"),
		get(toOpen+"/events", "limit=-1", "query.limit", "at least 0"),
	}
	for _, v := range []string{"abc", "1.5", "1e1", "%2B5", "05", "0x10", "9223372036854775808", "5%00", "%20", canary} {
		out = append(out, get(toCreate, "limit="+v, "query.limit", "integer"))
	}
	for _, v := range []string{"!!!", b64("x"), b64("[]"), b64(`[1]`), b64(`["x","y"]`), b64(`[1,".."]`), b64(`[1,"` + strings.Repeat("a", 101) + `"]`), b64(`{"a":1}`), b64(`[1e30,"a"]`), canary} {
		out = append(out, get(toCreate, "page_id="+v, "query.page_id", "page_id is not a cursor"))
	}
	for _, v := range []string{"x", "-5", "1.5", "1e3", "9223372036854775808", canary} {
		out = append(out, get(toOpen+"/events/stream", "after="+v, "query.after", ""), get(toOpen+"/events/ws", "after="+v, "query.after", ""))
	}
	head := get(toOpen+"/events/stream", "", "header.Last-Event-ID", "")
	head.name, head.header = "Last-Event-ID", []string{"Last-Event-ID", canary}
	return append(out, head)
}

// malformedIDs are ids in paths that are no ids: either they are refused, or the
// path they make does not exist.
func malformedIDs() []bad {
	var out []bad
	for _, m := range []string{"GET", "DELETE", "PATCH"} {
		body := ""
		if m == "PATCH" {
			body = `{"title":"t"}`
		}
		for _, id := range []string{"..%5c", "%00", "a%00b", strings.Repeat("a", 101), "%C3%BC", "a.b", "a%20b", "%ff", "a%2Fb", "%252e%252e", "a:b", "a~b", "%E2%80%AE"} {
			out = append(out, bad{name: clip(id), method: m, path: toCreate + "/" + id, body: body, status: 422, loc: "path.conversation_id"})
		}
		for _, id := range []string{"..", ".", "%2e%2e", "%2e%2e%2f", "%2e%2e%2fadmin", "..%2f..%2fetc", "%2e", "%2F", "a/../" + open, "a//b", open + "/", open + "/..", open + "/x"} {
			out = append(out, bad{name: clip(id), method: m, path: toCreate + "/" + id, body: body, status: http.StatusNotFound, msg: "Path not found"})
		}
	}
	for _, id := range []string{"unknown", strings.Repeat("0", 32)} {
		out = append(out, bad{name: id, method: "GET", path: toCreate + "/" + id, status: http.StatusNotFound, msg: "Conversation not found"},
			bad{name: id, method: "POST", path: toCreate + "/" + id + "/message", body: `{"message":"x"}`, status: http.StatusNotFound, msg: "Conversation not found"},
			bad{name: id, method: "GET", path: toCreate + "/" + id + "/events/stream", status: http.StatusNotFound, msg: "Conversation not found"})
	}
	return append(out, bad{name: "key", method: "DELETE", path: toKeys + "/" + strings.Repeat("a", 65), status: 422, loc: "path.key_id", msg: "at most 64"},
		bad{name: "unknown key", method: "DELETE", path: toKeys + "/nobody", status: http.StatusNotFound, msg: "Not found"})
}

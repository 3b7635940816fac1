package mcp

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"deckhand/internal/settings"
	"deckhand/internal/tool"
)

func TestRender(t *testing.T) {
	big := base64.StdEncoding.EncodeToString(make([]byte, maxImage+1))
	for name, c := range map[string]struct {
		raw    string
		want   string
		images int
		failed bool
	}{
		"text":            {`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, "a\nb", 0, false},
		"error":           {`{"content":[{"type":"text","text":"no"}],"isError":true}`, "no", 0, true},
		"nothing":         {`{"content":[]}`, "The tool gave no output.", 0, false},
		"silent error":    {`{"isError":true}`, "The tool failed without saying why.", 0, true},
		"structured":      {`{"content":[],"structuredContent":{"a":[1]}}`, `{"a":[1]}`, 0, false},
		"text first":      {`{"content":[{"type":"text","text":"t"}],"structuredContent":{"a":1}}`, "t", 0, false},
		"null structure":  {`{"structuredContent":null}`, "The tool gave no output.", 0, false},
		"image":           {`{"content":[{"type":"image","mimeType":"image/png","data":"QUJD"}]}`, "[image, image/png, 3 bytes]", 1, false},
		"odd image":       {`{"content":[{"type":"image","mimeType":"image/svg+xml","data":"QUJD"}]}`, "[image, image/svg+xml, 3 bytes]", 0, false},
		"broken image":    {`{"content":[{"type":"image","mimeType":"image/png","data":"?"}]}`, "[image, image/png, 0 bytes]", 0, false},
		"large image":     {`{"content":[{"type":"image","mimeType":"image/png","data":"` + big + `"}]}`, "[image, image/png, 5242881 bytes]", 0, false},
		"embedded image":  {`{"content":[{"type":"resource","resource":{"uri":"u","mimeType":"image/png","blob":"QUI="}}]}`, "[resource u] [image, image/png, 2 bytes]", 1, false},
		"embedded binary": {`{"content":[{"type":"resource","resource":{"uri":"u","blob":"QUI="}}]}`, "[resource u] [of an unknown kind, 2 bytes, which is not text]", 0, false},
		"unknown piece":   {`{"content":[{"type":"hologram"},7,null]}`, strings.TrimSpace(strings.Repeat("[a part of the result that cannot be shown]\n", 3)), 0, false},
		"not an object":   {`[1]`, "The tool's result could not be understood.", 0, true},
		"null":            {`null`, "The tool's result could not be understood.", 0, true},
		"not JSON":        {`{"content":`, "The tool's result could not be understood.", 0, true},
	} {
		r := render([]byte(c.raw))
		if r.Text != c.want || len(r.Images) != c.images || r.Failed != c.failed {
			t.Errorf("%s: %.200q, %d images, failed is %t", name, r.Text, len(r.Images), r.Failed)
		}
		sound(t, r)
	}
	many := render([]byte(`{"content":[` + strings.TrimSuffix(strings.Repeat(`{"type":"image","mimeType":"image/png","data":"QUJD"},`, 2*maxImages), ",") + `]}`))
	if len(many.Images) != maxImages {
		t.Errorf("%d images", len(many.Images))
	}
	large := render([]byte(`{"content":[{"type":"text","text":"` + strings.Repeat("x", maxDetails) + `"}],"isError":true}`))
	if len(large.Details) > 2*maxText || !strings.Contains(string(large.Details), `"isError":true`) {
		t.Errorf("%d bytes of details", len(large.Details))
	}
}

// sound holds for every result.
func sound(t *testing.T, r tool.Result) {
	t.Helper()
	var d details
	if err := json.Unmarshal(r.Details, &d); err != nil || !isObject(d.Result) {
		t.Errorf("%v: %.200s", err, r.Details)
	}
	if n := utf8.RuneCountInString(r.Text); n == 0 || n > maxText || !utf8.ValidString(r.Text) {
		t.Errorf("a text of %d characters", n)
	}
}

func FuzzRender(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"a"},{"type":"resource","resource":{"uri":"u","blob":"QUI="}}],"isError":true}`))
	f.Add([]byte(`{"content":[{"type":"image","mimeType":"image/png","data":"="}],"structuredContent":[]}`))
	f.Fuzz(func(t *testing.T, raw []byte) { sound(t, render(raw)) })
}

var forModels = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func TestNames(t *testing.T) {
	n := newNames()
	n.reserve([]string{"finish", "srv_finish"})
	long := strings.Repeat("x", 100)
	for _, c := range []struct{ server, tool, want string }{
		{"srv", "search", "search"}, {"other", "search", "other_search"}, {"srv", "search", "search"},
		{"srv", "finish", "srv_finish_2"}, {"srv", "files.read", "files_read"}, {"srv", "files/read", "srv_files_read"},
		{"srv", "größe", "gr__e"}, {"srv", "", "_"}, {"srv", long, long[:64]}, {"other", long, "other_" + long[:58]},
		{"srv", long + "y", "srv_" + long[:60]}, {"srv", long + "z", "srv_" + long[:58] + "_2"},
	} {
		if got := n.of(toolKey{c.server, c.tool}); got != c.want {
			t.Errorf("%s of %s is %s, want %s", c.tool, c.server, got, c.want)
		}
	}
	n.reserve([]string{"search"})
	if got := n.of(toolKey{"srv", "search"}); got != "srv_search" {
		t.Errorf("%s is reserved now", got)
	}
	if got := n.of(toolKey{"other", "search"}); got != "other_search" {
		t.Errorf("it was renamed to %s", got)
	}
}

func FuzzNames(f *testing.F) {
	f.Add("srv", "a.b", "srv", "a/b", "a_b")
	f.Fuzz(func(t *testing.T, s1, t1, s2, t2, reserved string) {
		n := newNames()
		n.reserve([]string{reserved})
		a, b := n.of(toolKey{s1, t1}), n.of(toolKey{s2, t2})
		if !forModels.MatchString(a) || !forModels.MatchString(b) || a == reserved || b == reserved || (a == b) != (s1 == s2 && t1 == t2) {
			t.Errorf("%q and %q", a, b)
		}
		if n.of(toolKey{s1, t1}) != a {
			t.Error("the name changed")
		}
	})
}

func TestOffers(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":"string"}}}`: `{"properties":{"a":{"type":"string"}},"type":"object"}`,
		`{"properties":{}}`: `{"properties":{},"type":"object"}`,
		`{"type":"string"}`: `{"type":"object"}`, `{"type":["object","null"]}`: `{"type":"object"}`, `{"type":"object","properties":[]}`: `{"type":"object"}`,
		`true`: `{"type":"object"}`, `null`: `{"type":"object"}`, ``: `{"type":"object"}`, `{`: `{"type":"object"}`,
		`{"type":"object","description":"` + strings.Repeat("x", maxSchema) + `"}`: `{"type":"object"}`,
	} {
		if got := string(objectSchema([]byte(raw))); got != want {
			t.Errorf("%.100s became %.100s", raw, got)
		}
	}
	offers, note := judge([]described{{name: ""}, {name: "a", title: "A title", readOnly: true}, {name: "a"}, {name: "b", description: strings.Repeat("ä", maxDescription), idempotent: true}})
	if len(offers) != 2 || note != "" || offers[0].description != "A title" || !offers[0].repeatable || !offers[1].repeatable {
		t.Errorf("%.300v %s", offers, note)
	}
	if d := offers[1].description; len(d) > maxDescription+3 || !utf8.ValidString(d) {
		t.Errorf("a description of %d bytes", len(d))
	}
	var fat []described
	for i := range 30 {
		fat = append(fat, described{name: string(rune('a' + i)), schema: json.RawMessage(`{"type":"object","description":"` + strings.Repeat("x", maxSchema-100) + `"}`)})
	}
	if offers, note := judge(fat); len(offers) != maxSchemas/maxSchema || !strings.Contains(note, "of its 30 tools") {
		t.Errorf("%d offers: %s", len(offers), note)
	}
}

func TestServersOfSettings(t *testing.T) {
	seconds := 7
	got := Servers(settings.MCP{
		SSE:   []settings.Server{{URL: "https://mcp.example.com/sse", APIKey: key("k")}, {URL: "https://www.example.org/a"}},
		SHTTP: []settings.Server{{URL: "https://mcp.example.com/mcp", Timeout: &seconds}, {URL: "http://[::1]:99/"}, {URL: "://"}},
		Stdio: []settings.StdioServer{{Name: "example_org", Command: "npx", Args: []string{"-y", "x"}}},
	})
	var names []string
	for _, s := range got {
		names = append(names, s.Name)
	}
	if want := "mcp_example_com example_org_2 mcp_example_com_2 __1 server example_org"; strings.Join(names, " ") != want {
		t.Errorf("%v", names)
	}
	if got[0].APIKey.Reveal() != "k" || got[2].timeout().Seconds() != 7 || got[0].timeout().Seconds() != 60 || got[5].Kind != Stdio || got[5].Args[1] != "x" {
		t.Errorf("%+v", got)
	}
	if !same(got[0], got[0]) || same(got[0], got[1]) {
		t.Error("what is the same is not")
	}
}

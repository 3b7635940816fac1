package knowledge_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"deckhand/internal/knowledge"
	"deckhand/internal/sandbox"
)

func TestKindsAreInferred(t *testing.T) {
	for name, c := range map[string]struct {
		text     string
		kind     knowledge.Kind
		triggers []string
		content  string
	}{
		"plain":            {"Use make.", knowledge.Repo, nil, "Use make."},
		"front":            {"---\nname: x\n---\nUse make.\n", knowledge.Repo, nil, "Use make."},
		"windows":          {"\ufeff---\r\nname: x\r\n---\r\nUse\r\nmake.", knowledge.Repo, nil, "Use\nmake."},
		"knowledge":        {"---\ntriggers: [Docker, ' k8s ']\n---\nx", knowledge.Knowledge, []string{"Docker", "k8s"}, "x"},
		"says repo":        {"---\ntype: repo\ntriggers:\n- docker\n---\nx", knowledge.Knowledge, []string{"docker"}, "x"},
		"says knowledge":   {"---\ntype: knowledge\n---\nx", knowledge.Repo, nil, "x"},
		"task":             {"---\nname: fix\ninputs:\n- name: a\n  description: b\n---\nx", knowledge.Task, []string{"/fix"}, "x"},
		"nameless task":    {"---\ninputs: [{name: a}]\n---\nx", knowledge.Task, []string{"/nameless task"}, "x"},
		"own trigger":      {"---\nname: fix\ntriggers: [/FIX, mend]\ninputs: [{name: a}]\n---\nx", knowledge.Task, []string{"/FIX", "mend"}, "x"},
		"unknown keys":     {"---\nversion: 1.0\nauthor: {name: [1, 2]}\nagent: CodeActAgent\n---\nx", knowledge.Repo, nil, "x"},
		"empty triggers":   {"---\ntriggers: ['', ' ']\n---\nx", knowledge.Repo, nil, "x"},
		"null":             {"---\nname:\ntriggers:\ninputs: null\nmcp_tools: null\n---\nx", knowledge.Repo, nil, "x"},
		"empty front":      {"---\n---\nx", knowledge.Repo, nil, "x"},
		"dashes in a text": {"x\n---\ny", knowledge.Repo, nil, "x\n---\ny"},
		"odd bytes":        {"a\x00b\xffc\x1b[31m", knowledge.Repo, nil, "ab\ufffdc[31m"},
		"unseen":           {"see\u200b\u202ethis\U000e0041\U000e0101 \u200d", knowledge.Repo, nil, "seethis \u200d"},
	} {
		t.Run(name, func(t *testing.T) {
			got := list(t, &knowledge.Library{}, knowledge.Scope{Repo: repo(map[string]string{".openhands/microagents/" + name + ".md": c.text})})[name]
			if got.Kind != c.kind || !slices.Equal(got.Triggers, c.triggers) || got.Content != c.content || got.Source != knowledge.Repository {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A broken file is told of, and the others are used.
func TestBrokenFiles(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i < 'l'; i++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", i, i, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1)
	}
	for name, c := range map[string]struct{ front, sentence string }{
		"not yaml":       {"name: [", "not valid"},
		"a list":         {"- a\n- b", "not valid"},
		"twice":          {"name: a\nname: b", "not valid"},
		"type":           {"type: other", `type is "other"`},
		"name":           {"name: 5", "name must be a text"},
		"trigger text":   {"triggers: docker", "triggers must be a list"},
		"trigger number": {"triggers: [404]", "list of texts"},
		"trigger object": {"triggers: {a: b}", "must be a list"},
		"inputs":         {"inputs: [a]", "list of objects"},
		"input name":     {"inputs: [{description: a}]", "inputs, entry 1: name is missing"},
		"input type":     {"inputs: [{name: a}, {name: [b]}]", "inputs, entry 2: name must be a text"},
		"servers":        {"mcp_tools: 5", "mcp_tools must be an object"},
		"remote servers": {"mcp_tools: {sse_servers: [{url: 'http://x'}]}", "only stdio_servers"},
		"server":         {"mcp_tools: {stdio_servers: [{name: a}]}", "mcp_tools: stdio_servers, entry 1: name and command"},
		"server args":    {"mcp_tools: {stdio_servers: [{name: a, command: b, args: c}]}", "args must be a list"},
		"server env":     {"mcp_tools: {stdio_servers: [{name: a, command: b, env: {A: 1}}]}", "env: A must be a text"},
		"many triggers":  {"triggers: [" + strings.Repeat("a,", 51) + "]", "more than 50"},
		"bomb":           {bomb, "anchors"},
		"merge":          {"a: &a {b: c}\nd:\n  <<: *a", "anchors"},
		"deep":           {"a: " + strings.Repeat("[", 5000), "too deep"},
		"deep maps":      {"a: " + strings.Repeat("{a: ", 3000), "too deep"},
		"deep lists":     {strings.Repeat("- ", 5000), "too deep"},
		"lines":          {"a: |\n  " + strings.Repeat("\n", 15000), "more than 400 lines"},
		"old lines":      {"a: |\n  " + strings.Repeat("\r", 15000), "more than 400 lines"},
		"large":          {"a: " + strings.Repeat("x", 20<<10), "more than 16384 bytes"},
		"very large":     {strings.Repeat("a: b\n", 100<<10), "more than 16384 bytes"},
		"control":        {"name: \"a\x00\"\ntriggers: 5", "must be"},
		"odd bytes":      {"name: \xff\xfe\ntriggers: 5", "must be"},
		"tag":            {"name: !!binary 5\ntriggers: 5", ""},
		"long sentence":  {"type: " + strings.Repeat("z", 5000), "type is"},
		"indented deeper": {func() (s string) {
			for i := range 150 {
				s += strings.Repeat(" ", i) + "a:\n"
			}
			return s
		}(), "too deep"},
	} {
		t.Run(name, func(t *testing.T) {
			got := first(t, repo(map[string]string{
				".openhands/microagents/bad.md":  "---\n" + c.front + "\n---\nEVIL",
				".openhands/microagents/good.md": "fine",
			}), "")
			sentence := problem(t, got.Problems, "bad.md")
			if sentence == "" || !strings.Contains(sentence, c.sentence) || len(sentence) > 400 || strings.Contains(sentence, "\n") {
				t.Errorf("it is said: %q", sentence)
			}
			has(t, got.Instructions, "fine")
			hasNot(t, got.Instructions, "EVIL")
		})
	}
	open := first(t, repo(map[string]string{".openhands/microagents/open.md": "---\nname: x\n"}), "")
	has(t, problem(t, open.Problems, "open.md"), "does not end")
}

func TestTriggers(t *testing.T) {
	files := repo(map[string]string{
		".openhands/microagents/docker.md":  "---\ntriggers: [Docker]\n---\nAbout containers.",
		".openhands/microagents/grüße.md":   "---\ntriggers: [GRÜSSE, Straße]\n---\nHallo.",
		".openhands/microagents/sub/fix.md": "---\nname: fix\ninputs:\n- {name: issue, description: its number}\n---\nMend ${issue} on ${branch}.",
	})
	for message, want := range map[string][]string{
		"":                                      nil,
		"use DOCKER-compose":                    {"docker"},
		"dock er":                               nil,
		"viele grüsse":                          {"grüße"},
		"die STRASSE, die straße":               {"grüße"},
		"/fix":                                  {"sub/fix"},
		"please run /FIX 12":                    {"sub/fix"},
		"please (/fix)":                         {"sub/fix"},
		"/fix. Then docker":                     {"docker", "sub/fix"},
		"src/fix":                               nil,
		"/fixes /fix-it /fix/it":                nil,
		"/fix.go":                               nil,
		"/fix.go but also /fix":                 {"sub/fix"},
		"the word fix":                          nil,
		strings.Repeat("a", 300<<10) + "docker": nil, // too far in
	} {
		got := mine(recall(t, &knowledge.Library{}, knowledge.Request{Scope: knowledge.Scope{Repo: files}, Message: message}).Items)
		var names []string
		for _, i := range got {
			names = append(names, i.Name)
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("%q brings up %q, want %q", shorten(message)[:min(len(message), 40)], names, want)
		}
	}
	got := recall(t, &knowledge.Library{}, knowledge.Request{Scope: knowledge.Scope{Repo: files}, Message: "docker /fix", Known: []string{"docker"}})
	if len(got.Items) != 1 || got.Items[0].Trigger != "/fix" || got.Instructions != "" || got.Skills != nil {
		t.Fatalf("what is known is told again: %+v", got)
	}
	has(t, got.Items[0].Content, "Mend ${issue}", "ask the user", "- ${branch}", "- ${issue} its number")
}

func TestSourcesAndNames(t *testing.T) {
	l := folders(t, map[string]string{
		"server/style.md": "server style", "server/deep/er/x.md": "---\ntriggers: [x]\n---\nserver x", "server/house.md": "house rules", "server/README.md": "no", "server/.hidden/y.md": "no", "server/notes.txt": "no",
		"server/skills/s/notes.md": "no", "users/ann/microagents/style.md": "ann's style", "users/bob/microagents/secret.md": "bob's", "users/evil.md": "no",
	})
	files := repo(map[string]string{
		".openhands/microagents/repo.md": "repo one", ".deckhand/microagents/repo.md": "repo two", ".openhands/microagents/readme.MD": "no",
		".openhands/microagents/deep/er/x.md": "---\ntriggers: [x]\n---\nrepo x", ".openhands/microagents/house.md": "no rules",
		".openhands_instructions": "legacy", "AGENTS.md": "agents", "AGENT.md": "no", "CLAUDE.md": "agents", ".cursorrules": "---\nnot: [front matter\n", "sub/AGENTS.md": "no",
	})
	s := knowledge.Scope{User: "ann", Repo: files, RepoDir: "/workspace/app"}
	got := map[string]string{}
	for name, m := range list(t, l, s) {
		got[name] = m.Content
	}
	want := map[string]string{"style": "ann's style", "deep/er/x": "repo x", "house": "house rules", "repo": "repo two", ".openhands_instructions": "legacy",
		"AGENTS": "agents", ".cursorrules": "---\nnot: [front matter"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
	r := recall(t, l, knowledge.Request{Scope: s, First: true, Message: "x"})
	has(t, r.Instructions, "[From house.md of the server]\nhouse rules", "[From style.md of the user]\nann's style", "[From /workspace/app/AGENTS.md of the repository]\nagents")
	if strings.Index(r.Instructions, "house rules") > strings.Index(r.Instructions, "agents") {
		t.Error("the repository comes before the server")
	}
	has(t, problem(t, r.Problems, "microagents/house.md"), "cannot replace")
	for _, user := range []string{"carl", "", ".", "..", "../users/bob", "bob/microagents", `a\b`, "\x00"} {
		if got := list(t, l, knowledge.Scope{User: user}); len(got) != 3 {
			t.Errorf("%q has %v", user, got)
		}
	}
}

func TestBuiltIns(t *testing.T) {
	got := recall(t, &knowledge.Library{}, knowledge.Request{First: true, Message: "write a microagent and open a Pull Request"})
	if len(got.Items) != 2 || got.Instructions != "" || len(got.Problems) > 0 {
		t.Errorf("got %+v", got)
	}
}

func TestServersAreReturnedAndNothingElse(t *testing.T) {
	text := "---\n%s\nmcp_tools:\n  stdio_servers:\n  - {name: fetch, command: uvx, args: [mcp-server-fetch], env: {A: b}}\n---\nx"
	got := first(t, repo(map[string]string{
		".openhands/microagents/always.md": fmt.Sprintf(text, ""), ".openhands/microagents/later.md": fmt.Sprintf(text, "triggers: [later]"),
	}), "later")
	want := knowledge.Server{Name: "fetch", Command: "uvx", Args: []string{"mcp-server-fetch"}, Env: map[string]string{"A": "b"},
		File: ".openhands/microagents/always.md", Source: knowledge.Repository}
	if len(got.MCP) != 1 || !reflect.DeepEqual(got.MCP[0], want) {
		t.Errorf("got %+v", got.MCP)
	}
}

func TestBounds(t *testing.T) {
	long := strings.Repeat("ä", 50<<10) // two bytes each
	got := first(t, repo(map[string]string{"AGENTS.md": long, "CLAUDE.md": "b" + long, ".cursorrules": "c" + long}), "")
	if n := len(got.Instructions); n > 129<<10 {
		t.Errorf("%d bytes of instructions", n)
	}
	has(t, got.Instructions, "ä…\n[AGENTS.md is longer than what is shown here.]", ".cursorrules and what comes after it was left out")
	hasNot(t, got.Instructions, "\ufffd")
	has(t, problem(t, got.Problems, ".cursorrules"), "left out")

	many := map[string]string{}
	for i := range 1000 {
		many[fmt.Sprintf(".openhands/microagents/%03d.md", i)] = "---\ntriggers: [go]\n---\n" + strings.Repeat("x", 5000)
		many[fmt.Sprintf(".agents/skills/s%03d/SKILL.md", i)] = "x"
	}
	got = first(t, repo(many), "go")
	size := 0
	for _, i := range got.Items {
		size += len(i.Content)
	}
	if size > 128<<10 || size < 100<<10 || len(got.Skills) > 200 {
		t.Errorf("%d bytes in %d items, %d skills", size, len(got.Items), len(got.Skills))
	}
	has(t, problem(t, got.Problems, "200.md"), "at most 200 files")

	large := map[string]string{}
	for i := range 100 {
		large[fmt.Sprintf(".openhands/microagents/%02d.md", i)] = strings.Repeat("x", 64<<10)
	}
	has(t, problem(t, first(t, repo(large), "").Problems, "32.md"), "2 MB")

	skills, more := map[string]string{}, map[string]string{}
	for i := range 150 {
		skills[fmt.Sprintf("server/skills/a%03d/SKILL.md", i)] = "x"
		more[fmt.Sprintf(".agents/skills/b%03d/SKILL.md", i)] = "x"
	}
	got = recall(t, folders(t, skills), knowledge.Request{Scope: knowledge.Scope{Repo: repo(more)}, First: true})
	if len(got.Skills) != 200 || got.Skills[0].Name != "a000" || len(got.Problems) != 1 {
		t.Errorf("%d skills, %v", len(got.Skills), got.Problems)
	}

	pipe := repo(map[string]string{"CLAUDE.md": "fine"})
	pipe["AGENTS.md"] = &fstest.MapFile{Data: []byte("EVIL"), Mode: fs.ModeNamedPipe | 0o644}
	if got := first(t, pipe, "").Instructions; !strings.Contains(got, "fine") || strings.Contains(got, "EVIL") {
		t.Errorf("a pipe was read: %q", got)
	}

	deep := first(t, repo(map[string]string{".openhands/microagents/" + strings.Repeat("d/", 50) + "x.md": "too deep"}), "")
	if deep.Instructions != "" || len(deep.Problems) != 1 {
		t.Errorf("got %+v", deep)
	}
}

func TestLinks(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	put(t, filepath.Join(outside, "x.md"), "SECRET")
	put(t, filepath.Join(outside, "s/SKILL.md"), "SECRET")
	put(t, filepath.Join(dir, "AGENTS.md"), "Use make.")
	put(t, filepath.Join(dir, ".openhands/microagents/in.md"), "fine")
	put(t, filepath.Join(dir, ".agents/skills/good/SKILL.md"), "---\nname: good\ndescription: d\n---\nfine")
	for name, to := range map[string]string{
		"CLAUDE.md": "AGENTS.md", ".cursorrules": filepath.Join(outside, "x.md"), ".openhands/microagents/out.md": "../../../" + filepath.Base(outside) + "/x.md", ".openhands/microagents/loop": ".",
		".openhands/microagents/self.md": "self.md", ".openhands/microagents/gone.md": "nothing", ".agents/skills/out": filepath.Join(outside, "s"), ".agents/skills/good/ref.md": filepath.Join(outside, "x.md"), ".claude": outside,
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	got := first(t, root.FS(), "")
	has(t, got.Instructions, "Use make.", "fine")
	hasNot(t, got.Instructions+fmt.Sprint(got.Skills), "SECRET")
	if n := strings.Count(got.Instructions, "Use make."); n != 1 {
		t.Errorf("what two names lead to is told %d times", n)
	}
	if len(got.Skills) != 1 || problem(t, got.Problems, ".cursorrules") == "" {
		t.Errorf("got %+v, %v", got.Skills, got.Problems)
	}
	for _, file := range []string{"ref.md", "../out/SKILL.md", "/etc/passwd", "a/../../x"} {
		if text, err := (&knowledge.Library{}).Skill(t.Context(), knowledge.Scope{Repo: root.FS()}, "good", file); err == nil || strings.Contains(text, "SECRET") {
			t.Errorf("%s was read: %q", file, text)
		}
	}
}

// What did not change is not read again; what did is.
func TestCache(t *testing.T) {
	c := &counted{MapFS: repo(map[string]string{"AGENTS.md": "one", ".openhands/microagents/a.md": "two"})}
	l := &knowledge.Library{}
	ask := func(key string) string {
		return recall(t, l, knowledge.Request{Scope: knowledge.Scope{Repo: c, Key: key}, First: true}).Instructions
	}
	before := ask("k")
	cold := c.opened.Swap(0)
	if ask("k") != before {
		t.Error("the second look is another")
	}
	warm := c.opened.Swap(0)
	if warm >= cold {
		t.Errorf("%d files were opened again, %d before", warm, cold)
	}
	c.MapFS["AGENTS.md"] = &fstest.MapFile{Data: []byte("new"), ModTime: time.Unix(2e9, 0)}
	has(t, ask("k"), "new")
	c.MapFS["AGENTS.md"] = &fstest.MapFile{Data: []byte("old"), ModTime: time.Unix(2e9, 0)}
	has(t, ask("k"), "new") // the age is unknown
	has(t, ask("other"), "old")
	has(t, ask(""), "old")
	delete(c.MapFS, "AGENTS.md")
	hasNot(t, ask("k"), "new")
}

func TestEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&knowledge.Library{}).Recall(ctx, knowledge.Request{Scope: knowledge.Scope{Repo: repo(nil)}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	lost := broken{sandbox.ErrLost}
	if _, err := (&knowledge.Library{}).Recall(t.Context(), knowledge.Request{Scope: knowledge.Scope{Repo: lost}}); !errors.Is(err, sandbox.ErrLost) {
		t.Errorf("a lost sandbox is an empty repository: %v", err)
	}
	got := first(t, broken{errors.New("disk on fire at /var/private")}, "")
	if len(got.Problems) == 0 || strings.Contains(fmt.Sprint(got.Problems), "private") {
		t.Errorf("got %v", got.Problems)
	}
}

func BenchmarkRecallUnchanged(b *testing.B) {
	files := map[string]string{"AGENTS.md": strings.Repeat("Use make.\n", 500)}
	for i := range 20 {
		files[fmt.Sprintf(".openhands/microagents/%d.md", i)] = fmt.Sprintf("---\ntriggers: [word%d, other%d]\n---\n%s", i, i, strings.Repeat("text ", 1000))
		files[fmt.Sprintf(".agents/skills/s%d/SKILL.md", i)] = "---\nname: s\ndescription: d\n---\n" + strings.Repeat("text ", 1000)
	}
	dir := b.TempDir()
	for name, text := range files {
		put(b, filepath.Join(dir, name), text)
	}
	l := &knowledge.Library{}
	r := knowledge.Request{Scope: knowledge.Scope{Repo: os.DirFS(dir), Key: "k"}, Message: "please do word7 " + strings.Repeat("lorem ipsum ", 200)}
	for b.Loop() {
		recall(b, l, r)
	}
}

package sandboxtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"deckhand/internal/sandbox"
)

var toolTests = []test[*box]{
	{name: "Edit", run: edit},
	{name: "EditMistakes", run: editMistakes},
	{name: "EditOnce", run: editOnce},
	{name: "MCP", run: toolServer},
	{name: "MCPDies", run: toolServerDies},
	{name: "MCPBroken", run: toolServerBroken},
	{name: "Ports", run: ports},
}

func ptr[T any](v T) *T { return &v }

func (b *box) edit(t *testing.T, p sandbox.EditParams) sandbox.EditResult {
	t.Helper()
	if p.ID == "" && p.Command != "view" {
		p.ID = newID(t)
	}
	r, err := b.Edit(within(t), p)
	must(t, err)
	if failed := strings.HasPrefix(r.Text, "ERROR:"); failed != r.Failed {
		t.Errorf("failed is %v, but the text is %q", r.Failed, r.Text)
	}
	return r
}

// edit: the editor's commands, one after the other on one file.
func edit(t *testing.T, b *box) {
	name, dir := b.folder(t)
	file := dir + "/deep/file.txt"
	now := func(want string) {
		t.Helper()
		same(t, "file", b.get(t, name+"/deep/file.txt"), want)
	}
	r := b.edit(t, sandbox.EditParams{Command: "create", Path: file, FileText: ptr("one\ntwo\nthree\n")})
	if r.Failed || r.PrevExist || r.New != "one\ntwo\nthree\n" {
		t.Fatalf("create: %+v", r)
	}
	now("one\ntwo\nthree\n")
	r = b.edit(t, sandbox.EditParams{Command: "view", Path: file})
	for _, line := range []string{"one", "two", "three"} {
		contains(t, "view", r.Text, line)
	}
	r = b.edit(t, sandbox.EditParams{Command: "view", Path: file, ViewRange: []int{2, -1}})
	if strings.Contains(r.Text, "one") || !strings.Contains(r.Text, "three") {
		t.Errorf("lines from the second on: %q", r.Text)
	}
	r = b.edit(t, sandbox.EditParams{Command: "str_replace", Path: file, OldStr: ptr("two\n"), NewStr: ptr("2\nzwei\n")})
	if r.Failed || !r.PrevExist || r.Old != "one\ntwo\nthree\n" || r.New != "one\n2\nzwei\nthree\n" {
		t.Errorf("str_replace: %+v", r)
	}
	now("one\n2\nzwei\nthree\n")
	b.edit(t, sandbox.EditParams{Command: "insert", Path: file, InsertLine: ptr(0), NewStr: ptr("zero")})
	now("zero\none\n2\nzwei\nthree\n")
	b.edit(t, sandbox.EditParams{Command: "str_replace", Path: file, OldStr: ptr("zwei\n")}) // by nothing
	now("zero\none\n2\nthree\n")
	for _, want := range []string{"zero\none\n2\nzwei\nthree\n", "one\n2\nzwei\nthree\n", "one\ntwo\nthree\n"} {
		if r := b.edit(t, sandbox.EditParams{Command: "undo_edit", Path: file}); r.Failed {
			t.Errorf("undo: %s", r.Text)
		}
		now(want)
	}
	contains(t, "view of a folder", b.edit(t, sandbox.EditParams{Command: "view", Path: dir}).Text, "deep/file.txt")
}

func editMistakes(t *testing.T, b *box) {
	name, dir := b.folder(t)
	b.put(t, name+"/file", "same\nsame\n")
	b.put(t, name+"/binary", "a\x00\xff\xfe\x01b")
	file := dir + "/file"
	for what, p := range map[string]sandbox.EditParams{
		"create over a file":        {Command: "create", Path: file, FileText: ptr("x")},
		"create of nothing":         {Command: "create", Path: dir + "/new"},
		"a relative path":           {Command: "view", Path: "file"},
		"two matches":               {Command: "str_replace", Path: file, OldStr: ptr("same"), NewStr: ptr("x")},
		"no match":                  {Command: "str_replace", Path: file, OldStr: ptr("other"), NewStr: ptr("x")},
		"the same":                  {Command: "str_replace", Path: file, OldStr: ptr("same\nsame"), NewStr: ptr("same\nsame")},
		"nothing to replace":        {Command: "str_replace", Path: file, NewStr: ptr("x")},
		"insert far away":           {Command: "insert", Path: file, InsertLine: ptr(99), NewStr: ptr("x")},
		"insert before all":         {Command: "insert", Path: file, InsertLine: ptr(-1), NewStr: ptr("x")},
		"a file that is not there":  {Command: "view", Path: dir + "/none"},
		"change what is not there":  {Command: "str_replace", Path: dir + "/none", OldStr: ptr("a"), NewStr: ptr("x")},
		"undo of nothing":           {Command: "undo_edit", Path: file},
		"a range that is none":      {Command: "view", Path: file, ViewRange: []int{5, 1}},
		"a command that is none":    {Command: "explode", Path: file},
		"a binary":                  {Command: "view", Path: dir + "/binary"},
		"a folder that is replaced": {Command: "str_replace", Path: dir, OldStr: ptr("a"), NewStr: ptr("b")},
	} {
		if r := b.edit(t, p); !r.Failed {
			t.Errorf("%s is no mistake: %q", what, r.Text)
		}
	}
	same(t, "file", b.get(t, name+"/file"), "same\nsame\n")
}

// editOnce: what was done is not done again.
func editOnce(t *testing.T, b *box) {
	name, dir := b.folder(t)
	b.put(t, name+"/file", "x\n")
	p := sandbox.EditParams{ID: newID(t), Command: "insert", Path: dir + "/file", InsertLine: ptr(0), NewStr: ptr("once")}
	first := b.edit(t, p)
	p.Again = true
	again := b.edit(t, p)
	if first != again || first.Failed {
		t.Errorf("asked again, the editor says %+v, and first it said %+v", again, first)
	}
	same(t, "file", b.get(t, name+"/file"), "once\nx\n")
	must(t, b.Ack(within(t), p.ID))
	p.Again = false
	b.edit(t, p)
	same(t, "file after it was forgotten", b.get(t, name+"/file"), "once\nonce\nx\n")
}

// said is the text that a tool returned.
func said(t *testing.T, r sandbox.MCPResult) string {
	t.Helper()
	if r.Error != "" {
		return "error: " + r.Error
	}
	var v struct {
		Content []struct{ Text string }
	}
	must(t, json.Unmarshal(r.Result, &v))
	if len(v.Content) != 1 {
		t.Fatalf("the tool returned %s", r.Result)
	}
	return v.Content[0].Text
}

func (b *box) tool(t *testing.T, server, tool, text string) sandbox.MCPResult {
	t.Helper()
	args, _ := json.Marshal(map[string]string{"text": text})
	r, err := b.MCPCall(within(t), sandbox.MCPCall{ID: newID(t), Server: server, Tool: tool, Args: args})
	must(t, err)
	return r
}

// state is what the runner says of one tool server.
func (b *box) state(t *testing.T, name string) sandbox.MCPState {
	t.Helper()
	states, err := b.MCPStates(within(t))
	must(t, err)
	for _, s := range states {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no tool server %s in %+v", name, states)
	return sandbox.MCPState{}
}

func toolServer(t *testing.T, b *box) {
	_, dir := b.folder(t)
	server := sandbox.MCPServer{Name: t.Name(), Command: b.program(t), Args: []string{"mcp"}, Env: map[string]string{"TOKEN": "a b"}}
	st, err := b.MCPStart(within(t), server)
	must(t, err)
	var names []string
	for _, tool := range st.Tools {
		names = append(names, tool.Name)
		contains(t, "schema", string(tool.InputSchema), `"object"`)
	}
	slices.Sort(names)
	same(t, "tools, from both pages", strings.Join(names, " "), "append die echo env files")
	if !st.Running || st.Starts != 1 || st.Version == "" {
		t.Errorf("a fresh server is %+v", st)
	}
	contains(t, "Server", st.Server, "helper")
	st, err = b.MCPStart(within(t), server)
	must(t, err)
	same(t, "starts, asked again with the same words", st.Starts, 1)

	same(t, "echo", said(t, b.tool(t, t.Name(), "echo", "héllo\n\x01")), "héllo\n\x01")
	same(t, "echo of much", len(said(t, b.tool(t, t.Name(), "echo", strings.Repeat("x", 2<<20)))), 2<<20)
	same(t, "environment", said(t, b.tool(t, t.Name(), "env", "TOKEN")), "a b")
	same(t, "files it was given", said(t, b.tool(t, t.Name(), "files", "")), "")
	contains(t, "Stderr", b.state(t, t.Name()).Stderr, "the helper serves tools")
	all(t, 20, func(i int) error {
		r, err := b.MCPCall(within(t), sandbox.MCPCall{ID: newID(t), Server: t.Name(), Tool: "echo", Args: json.RawMessage(fmt.Sprintf(`{"text":"n%dn"}`, i))})
		if err == nil && !strings.Contains(string(r.Result), fmt.Sprintf("n%dn", i)) {
			err = fmt.Errorf("answer %s to %d", r.Result, i)
		}
		return err
	})

	args, _ := json.Marshal(map[string]string{"text": dir + "/calls"})
	call := sandbox.MCPCall{ID: newID(t), Server: t.Name(), Tool: "append", Args: args}
	all(t, 5, func(int) error { return second(b.MCPCall(within(t), call)) })
	same(t, "lines of one call that was asked for five times", b.ok(t, "cat %s/calls", dir), "called")

	must(t, b.MCPStop(within(t), t.Name()))
	must(t, b.MCPStop(within(t), t.Name()+"-none"))
	states, err := b.MCPStates(within(t))
	must(t, err)
	for _, s := range states {
		if s.Name == t.Name() && s.Running {
			t.Error("a stopped server runs")
		}
	}
}

// toolServerDies: who calls it is told, and the next call finds it alive.
func toolServerDies(t *testing.T, b *box) {
	_, err := b.MCPStart(within(t), sandbox.MCPServer{Name: t.Name(), Command: b.program(t), Args: []string{"mcp"}})
	must(t, err)
	if r := b.tool(t, t.Name(), "die", ""); r.Error == "" {
		t.Errorf("the server died and the call says %s", r.Result)
	}
	same(t, "the next call", said(t, b.tool(t, t.Name(), "echo", "alive")), "alive")
	st := b.state(t, t.Name())
	if !st.Running || st.Starts != 2 || st.Exit == "" {
		t.Errorf("a server that died once is %+v", st)
	}
	contains(t, "Exit", st.Exit, "7")
	if r := b.tool(t, t.Name()+"-none", "echo", ""); r.Error == "" {
		t.Errorf("a server that is none answered %s", r.Result)
	}
}

// toolServerBroken: what is no tool server is found out.
func toolServerBroken(t *testing.T, b *box) {
	for what, server := range map[string]sandbox.MCPServer{
		"not there":    {Command: "there-is-no-such-program"},
		"ends at once": {Command: "sh", Args: []string{"-c", "echo sorry >&2; exit 4"}},
		"talks":        {Command: "sh", Args: []string{"-c", "echo this is no protocol; echo; echo '{}'; exit 0"}},
	} {
		server.Name = t.Name() + what
		st, err := b.MCPStart(within(t), server)
		if err == nil && st.Running {
			t.Errorf("a server that %s is %+v", what, st)
		}
	}
}

var listening = regexp.MustCompile(`listening on (\d+)`)

// listen starts something that listens inside and sends back what it gets.
func (b *box) listen(t *testing.T, address string) (port int, g *background) {
	t.Helper()
	g = b.start(t, sandbox.Command{Shell: newID(t), Text: b.program(t) + " listen " + address})
	t.Cleanup(func() {
		ctx, cancel := afterwards()
		defer cancel()
		select {
		case <-g.done:
		default:
			_, _ = b.Run(ctx, sandbox.Process{Args: []string{"sh", "-c", `for p in /proc/[0-9]*; do grep -q "listen.` + address + `" $p/cmdline 2>/dev/null && kill -9 ${p#/proc/}; done`}}, nil)
		}
	})
	g.shows(t, "\n")
	m := listening.FindStringSubmatch(g.output())
	if m == nil {
		t.Fatalf("nothing listens on %s: %s", address, g.output())
	}
	port, _ = strconv.Atoi(m[1])
	return port, g
}

// ports: what listens inside can be connected to and is listed.
func ports(t *testing.T, b *box) {
	var open []int
	for _, address := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::]:0", "[::1]:0"} {
		port, _ := b.listen(t, address)
		open = append(open, port)
	}
	listed, err := b.Ports(within(t))
	must(t, err)
	for _, port := range open {
		if !slices.Contains(listed, port) {
			t.Errorf("port %d is not listed in %v", port, listed)
		}
		b.echo(t, port)
	}
	if slices.Contains(listed, sandbox.ProxyPort) {
		t.Error("the proxy's port is listed")
	}
	all(t, 20, func(int) error { b.echo(t, open[0]); return nil })
	for _, port := range []int{1, 0, -1, 70000} {
		if c, err := b.DialPort(within(t), port); err == nil {
			c.Close()
			t.Errorf("something listens on port %d", port)
		}
	}
}

// echo sends a lot, says that it was all, and gets it back.
func (b *box) echo(t *testing.T, port int) {
	t.Helper()
	c, err := b.DialPort(within(t), port)
	if err != nil {
		t.Errorf("port %d: %v", port, err)
		return
	}
	defer c.Close()
	if deadline, ok := within(t).Deadline(); ok {
		_ = c.SetDeadline(deadline)
	}
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<15)
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(content)
		if half, ok := c.(interface{ CloseWrite() error }); ok && err == nil {
			err = half.CloseWrite()
		}
		sent <- err
	}()
	got := make([]byte, len(content))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, content) {
		t.Errorf("port %d: of what was sent came something else back: %v", port, err)
	}
	if err := <-sent; err != nil {
		t.Errorf("port %d: %v", port, err)
	}
	if n, err := c.Read(got); err != io.EOF {
		t.Errorf("port %d: after the end come %d bytes, %v", port, n, err)
	}
}

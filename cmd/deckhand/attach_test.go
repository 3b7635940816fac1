package main

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/cli"
	"deckhand/internal/llm/llmtest"
)

// tended is a server with the built-in model. Its sandboxes, which would outlive
// it, go at the end of the test.
func tended(t *testing.T) *box {
	t.Helper()
	b := serve(t, "")
	t.Cleanup((&person{box: b}).dropAll)
	b.demo("scripted/demo")
	return b
}

// program is a command of the program beside the server, as a process.
func (b *box) program(args ...string) *exec.Cmd {
	b.t.Helper()
	cmd := process(args...)
	cmd.Env = append(cmd.Env, "DECKHAND_DATA_DIR="+b.dir, "TERM=xterm", "NO_COLOR=1", "DECKHAND_SERVER=", "DECKHAND_KEY=")
	return cmd
}

// beside runs a command beside the server, in this process.
func (b *box) beside(args ...string) (code int, stdout, stderr string) {
	b.t.Helper()
	return command(b.t, append(args, "--data-dir", b.dir)...)
}

// answered is a conversation in which the message was said and taken care of.
func (b *box) answered(text string) string {
	b.t.Helper()
	id := b.create(text)
	b.follow(id, 0, agentIs("awaiting_user_input"))
	return id
}

// careful makes the agent ask before each call.
func (b *box) careful() {
	b.t.Helper()
	if _, err := b.client.StoreSettings(b.t.Context(), api.SettingsInput{LLMModel: api.Some("scripted/demo"), ConfirmationMode: api.Some(true)}); err != nil {
		b.t.Fatal(err)
	}
}

// A person talks to the agent while it works, pauses it, and leaves.
func TestAttach(t *testing.T) {
	t.Parallel()
	b := tended(t)
	id := b.answered("say hello")
	s := onScreen(t, b.program("attach", id[:10]))
	s.expect("> say hello")
	s.expect("You said:")
	s.expect("Ctrl-D detaches")
	s.expect("done")
	s.enter("$ echo be''gun; mkfifo wait; cat wait; echo not reached")
	s.expect("  begun")
	s.expect("working")
	s.enter("something else") // while it works
	s.expect("> something else")
	s.press(ctrlC)
	s.expect("pausing after this step")
	s.press(ctrlC)
	s.expect("interrupting this step")
	s.expect("· paused")
	s.enter("")
	s.expect(`You said: "something else"`)
	s.expect("done")
	s.enter("/help")
	s.expect("/detach")
	s.press(ctrlC)
	s.expect("Ctrl-C again to detach")
	s.press("x")
	s.expect("> x") // with a key between them they are not two
	s.press("\x7f" + ctrlC)
	s.expect("Ctrl-C again to detach")
	s.press(ctrlC)
	s.expect("detached")
	out := s.ends(cli.ExitDone)
	if n := strings.Count(strings.ToLower(out), "pausing"); n != 1 {
		t.Errorf("it says %d times that it pauses:\n%s", n, out)
	}
	if strings.Contains(out, "  not reached") {
		t.Error("the command went on")
	}
	if got, err := b.client.Conversation(t.Context(), id); err != nil || got.Status != "RUNNING" {
		t.Errorf("detaching has ended it: %+v, %v", got, err)
	}
}

// On a terminal that cannot be drawn on, Ctrl-C is a word to the agent, too.
func TestAttachToADumbTerminal(t *testing.T) {
	t.Parallel()
	b := tended(t)
	id := b.create("$ echo be''gun; mkfifo wait; cat wait")
	cmd := b.program("attach", id, "--after", "0")
	cmd.Env = append(cmd.Env, "TERM=dumb")
	s := onScreen(t, cmd)
	s.expect("  begun")
	s.press(ctrlC)
	s.expect("Ctrl-C again to interrupt this step")
	s.press(ctrlC)
	if out := s.ends(cli.ExitInterrupted); !strings.Contains(out, "interrupting this step") {
		t.Errorf("it said %q", out)
	}
	if got, err := b.client.Conversation(t.Context(), id); err != nil || got.AgentState != "paused" {
		t.Errorf("it is %+v, %v", got, err)
	}
}

func TestAttachLeaves(t *testing.T) {
	t.Parallel()
	b := tended(t)
	id := b.answered("hello")
	for name, leave := range map[string]func(*screen){
		"Ctrl-D": func(s *screen) { s.press(ctrlD) },
		"a word": func(s *screen) { s.enter("/detach") },
		"an end": func(s *screen) {
			_ = s.cmd.Process.Signal(os.Signal(os.Interrupt))
			s.expect("again")
			_ = s.cmd.Process.Signal(os.Interrupt)
		},
		"a paste": func(s *screen) { s.press("\x1b[200~/det\nach\x1b[201~"); s.expect("↵"); s.press("\x15" + ctrlD) },
	} {
		t.Run(name, func(t *testing.T) {
			s := onScreen(t, b.program("attach", id))
			s.t = t
			s.expect("done")
			leave(s)
			s.expect("detached")
			if out := s.ends(cli.ExitDone); !strings.HasSuffix(out, "\x1b[?2004l") {
				t.Errorf("the terminal is not as it was: %q", out[len(out)-50:])
			}
		})
	}
	s := onScreen(t, b.program("attach", id))
	s.expect("done")
	if err := b.client.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	s.expect("the conversation was deleted")
	s.ends(cli.ExitError)
}

// The agent asks, and a line answers.
func TestAttachApprovals(t *testing.T) {
	t.Parallel()
	b := tended(t)
	b.careful()
	s := onScreen(t, b.program("new", "$ echo one > made; cat made", "--attach"))
	const question = "Approve? (risk unknown)"
	s.expect("$ echo one > made; cat made")
	s.expect(question)
	s.enter("perhaps")
	s.expect("one of the letters")
	s.enter("y")
	s.expect("  one")
	s.expect("done")
	s.enter("$ echo t''wo")
	s.expect(question)
	s.enter("n")
	s.expect("Reason for the agent")
	s.enter("not needed")
	s.expect("rejected this call: not needed")
	s.expect("done")
	s.enter("$ echo t''hree")
	s.expect(question)
	s.enter("e")
	s.expect("edit:")
	s.enter("; echo f''our")
	s.expect("  three")
	s.expect("  four")
	s.expect("done")
	s.enter("$ echo f''ive")
	s.expect(question)
	page, err := b.client.Conversations(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.press("something that was begun")
	s.expect("something that was begun")
	if err := b.client.Decide(t.Context(), page.Results[0].ConversationID, api.Decision{Decision: "accept"}); err != nil { // somebody else
		t.Fatal(err)
	}
	s.expect("approved in another client")
	s.expect("  five")
	s.expect("done")
	s.press(ctrlD) // on an empty line, for the answer is not needed any more
	s.expect("detached")
	s.ends(cli.ExitDone)
}

// Whatever is said in a conversation, the terminal is only told what we tell it.
func TestAttachedTerminalIsNotTouched(t *testing.T) {
	t.Parallel()
	b := tended(t)
	id := b.answered("$ printf '\\033]0;pwned\\007\\033[2Jfrom a program\\n'")
	if err := b.client.Say(t.Context(), id, "say \x1b]0;pwned\x07\u202egnp", ""); err != nil {
		t.Fatal(err)
	}
	cmd := b.program("attach", id)
	cmd.Env = append(cmd.Env, "NO_COLOR=")
	s := onScreen(t, cmd)
	s.expect("␛]0;pwned␇␛[2Jfrom a program")
	s.expect("␛]0;pwned␇\ufffdgnp")
	s.expect("done")
	s.press(ctrlD)
	out := s.ends(cli.ExitDone)
	ours := regexp.MustCompile(`\x1b\[(0|1|2|31|32|33|36)m|\r?\x1b\[\d*[ACJK]|\x1b\[\?2004[hl]`)
	if rest := ours.ReplaceAllString(out, ""); strings.ContainsAny(rest, "\x1b\a\u202e") || !strings.Contains(out, "\x1b[1m") {
		t.Errorf("%q", rest)
	}
}

// proxy is a way to the server that can be cut.
type proxy struct {
	t    *testing.T
	to   string
	addr string
	mu   sync.Mutex
	l    net.Listener
	open []net.Conn
	wg   sync.WaitGroup
}

func (p *proxy) listen() {
	p.t.Helper()
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.l, p.addr = l, l.Addr().String()
	p.wg.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", p.to)
			if err != nil {
				from.Close()
				continue
			}
			p.mu.Lock()
			p.open = append(p.open, from, to)
			p.mu.Unlock()
			p.wg.Go(func() { _, _ = io.Copy(to, from); to.Close() })
			p.wg.Go(func() { _, _ = io.Copy(from, to); from.Close() })
		}
	})
}

func (p *proxy) cut() {
	p.l.Close()
	p.mu.Lock()
	for _, c := range p.open {
		c.Close()
	}
	p.open = nil
	p.mu.Unlock()
	p.wg.Wait()
}

// What happens while the connection is cut is shown when it is there again, once.
func TestAttachComesBack(t *testing.T) {
	t.Parallel()
	b := tended(t)
	id := b.answered("hello")
	p := &proxy{t: t, to: strings.TrimPrefix(b.base, "http://"), addr: "127.0.0.1:0"}
	p.listen()
	t.Cleanup(p.cut)
	s := onScreen(t, b.program("attach", id, "--server", "http://"+p.addr, "--key-file", filepath.Join(b.dir, "admin.key")))
	s.expect("done")
	p.cut()
	s.expect("connection lost")
	s.enter("kept for later")
	s.expect("not sent")
	before, err := b.client.Conversation(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.client.Say(t.Context(), id, "said meanwhile", ""); err != nil {
		t.Fatal(err)
	}
	b.follow(id, before.LastEventID, agentIs("awaiting_user_input"))
	p.listen()
	s.expect(`You said: "said meanwhile"`)
	s.expect("done")
	s.press("\r") // what was not sent is still there
	s.expect(`You said: "kept for later"`)
	s.press(ctrlD)
	if out := s.ends(cli.ExitDone); strings.Count(out, `You said: "said meanwhile"`) != 1 || strings.Count(out, `You said: "kept for later"`) != 1 {
		t.Errorf("it was shown twice:\n%s", out)
	}
}

// Without a terminal it is plain lines until the agent has nothing more to do.
func TestAttachPlain(t *testing.T) {
	t.Parallel()
	b := tended(t)
	for name, c := range map[string]struct {
		begin func() string
		code  int
		want  string
	}{
		"an answer": {func() string { return b.create("$ echo one; (exit 3)") }, cli.ExitDone,
			"> $ echo one; (exit 3)\nI run the command in the sandbox.\n$ echo one; (exit 3)\n  one\n  exit code 3\n"},
		"one from before": {func() string { return b.answered("$ echo two") }, cli.ExitDone, "$ echo two\n  two\n"},
		"a pause": {func() string {
			id := b.create("$ mkfifo wait; cat wait")
			b.follow(id, 0, func(it client.LegacyItem) bool { return it.Event != nil && it.Event.Action == "run" })
			if err := b.client.Interrupt(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			return id
		}, cli.ExitInterrupted, "· paused\n"},
		"a message that waits": {func() string {
			id := b.answered("first")
			if err := b.client.Say(t.Context(), id, "second", ""); err != nil {
				t.Fatal(err)
			}
			return id
		}, cli.ExitDone, `You said: "second"`},
	} {
		code, out, errs := b.beside("attach", c.begin())
		if code != c.code || !strings.Contains(out, c.want) || errs != "" || strings.ContainsAny(out, "\x1b\r") {
			t.Errorf("%s: %d %q\n%s", name, code, errs, out)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	id := b.create("$ mkfifo wait; cat wait")
	out := &alarm{on: "$ mkfifo", do: cancel}
	if code := run(ctx, []string{"attach", id, "--data-dir", b.dir}, out, io.Discard); code != cli.ExitInterrupted {
		t.Errorf("%d after Ctrl-C", code)
	}
	b.careful()
	if code, out, _ := b.beside("attach", b.create("$ echo one")); code != cli.ExitRejected || !strings.Contains(out, "! a tool call needs approval") {
		t.Errorf("%d %s", code, out)
	}
}

// An agent that waits for the provider goes on by itself; one that gave up does not.
func TestAttachAtARateLimit(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	t.Cleanup((&person{box: b}).dropAll)
	server := llmtest.New(t, func(llmtest.Asked) llmtest.Reply {
		return llmtest.Reply{Status: 429, Message: "slow down", RetryAfter: "0.01"}
	})
	if _, err := b.client.StoreSettings(t.Context(), api.SettingsInput{LLMModel: api.Some("openai/gpt-4o"), LLMAPIKey: api.Some("sk-test-key-123"), LLMBaseURL: api.Some(server.URL + "/v1")}); err != nil {
		t.Fatal(err)
	}
	id := b.create("go")
	for _, after := range []string{"0", "0", "1000"} { // while it waits, when it gave up, and with nothing left to be shown
		code, out, errs := b.beside("attach", id, "--after", after)
		if code != cli.ExitError || errs != "" || after == "0" && !strings.Contains(out, "! Rate limited by the provider") {
			t.Errorf("after %s: %d %q\n%s", after, code, errs, out)
		}
	}
}

// alarm does something when a text is written.
type alarm struct {
	on string
	do func()
}

func (w *alarm) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.on) {
		w.do()
	}
	return len(p), nil
}

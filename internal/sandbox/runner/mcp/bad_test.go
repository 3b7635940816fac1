package mcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// modeVariable makes the test's own program a tool server that misbehaves.
const modeVariable = "DECKHAND_TEST_TOOL_SERVER"

type obj = map[string]any

// badOne is the server. It reads one line after the other and answers in turn,
// unless it is told otherwise.
type badOne struct {
	mode     string
	in       *bufio.Reader
	tools    []string
	received []string
	next     int
}

func badServer(mode string) {
	s := &badOne{mode: mode, in: bufio.NewReaderSize(os.Stdin, 1<<20), tools: []string{"echo"}}
	fmt.Fprintln(os.Stderr, "first words of mode", mode)
	append1("starts", "x")
	switch mode {
	case "dead":
		fmt.Fprintln(os.Stderr, "no such module: leftpad")
		os.Exit(3)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "noisy":
		fmt.Println("Welcome to this server!\n\n{\"level\":\"info\"}\n42\n[]\n\"jsonrpc\"\n{broken")
	}
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			if mode == "stubborn" {
				append1("deaf", "x")
				select {}
			}
			return
		}
		var m message
		if json.Unmarshal([]byte(line), &m) == nil {
			s.take(m)
		}
	}
}

func append1(file, text string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = f.WriteString(text)
		f.Close()
	}
}

func (s *badOne) send(v any) {
	b, _ := json.Marshal(v)
	fmt.Printf("%s\n", b)
}

func (s *badOne) reply(id json.RawMessage, result any) {
	s.send(obj{"result": result, "jsonrpc": "2.0", "id": id})
}

func words(text string) obj { return obj{"content": []obj{{"type": "text", "text": text}}} }

// ask sends a request of the server and waits for its answer.
func (s *badOne) ask(method string) message {
	s.next++
	id := fmt.Sprintf(`"server-%d"`, s.next)
	s.send(obj{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": obj{}})
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			os.Exit(9)
		}
		var m message
		if json.Unmarshal([]byte(line), &m) == nil && string(m.ID) == id {
			return m
		}
	}
}

func (s *badOne) take(m message) {
	switch m.Method {
	case "initialize":
		s.initialize(m)
	case "tools/list":
		s.list(m)
	case "tools/call":
		var p struct {
			Name      string
			Arguments json.RawMessage
		}
		_ = json.Unmarshal(m.Params, &p)
		s.call(m.ID, p.Name, p.Arguments)
	case "ping":
		append1("pings", "x")
		if s.mode != "no pong" {
			s.reply(m.ID, obj{})
		}
	default:
		s.received = append(s.received, m.Method+" "+string(m.Params))
	}
}

func (s *badOne) initialize(m message) {
	if s.mode == "mute" {
		fmt.Fprintln(os.Stderr, "downloading the internet")
		append1("asked", string(m.Params))
		return
	}
	var p struct{ ProtocolVersion string }
	_ = json.Unmarshal(m.Params, &p)
	if v, ok := strings.CutPrefix(s.mode, "version "); ok {
		p.ProtocolVersion = v
	}
	s.reply(m.ID, obj{"protocolVersion": p.ProtocolVersion, "capabilities": obj{"tools": obj{}}, "serverInfo": obj{"name": "bad", "version": "0.1"}})
	if s.mode == "eager" { // it changes its tools before it was asked for them
		s.send(obj{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
	}
}

func (s *badOne) list(m message) {
	var p struct{ Cursor string }
	_ = json.Unmarshal(m.Params, &p)
	page, _ := strconv.Atoi(p.Cursor)
	tool := func(name string) obj { return obj{"name": name, "inputSchema": obj{"type": "object"}} }
	switch s.mode {
	case "no tools":
		s.send(obj{"jsonrpc": "2.0", "id": m.ID, "error": obj{"code": noSuchMethod, "message": "none"}})
	case "pages":
		r := obj{"tools": []obj{tool("tool-" + strconv.Itoa(page)), {"name": ""}, {"name": "plain-" + strconv.Itoa(page)}}}
		if page < 4 {
			r["nextCursor"] = strconv.Itoa(page + 1)
		}
		s.reply(m.ID, r)
	case "endless":
		s.reply(m.ID, obj{"tools": []obj{tool("t")}, "nextCursor": strconv.Itoa(page + 1)})
	case "circle":
		s.reply(m.ID, obj{"tools": []obj{tool("t")}, "nextCursor": "again"})
	case "eager":
		s.reply(m.ID, obj{"tools": []obj{tool("list-" + strconv.Itoa(s.next))}})
		s.next++
	default:
		var all []obj
		for _, t := range s.tools {
			all = append(all, tool(t))
		}
		s.reply(m.ID, obj{"tools": all})
	}
}

func (s *badOne) call(id json.RawMessage, name string, args json.RawMessage) {
	var text string
	_ = json.Unmarshal(args, &text)
	switch name {
	case "echo":
		s.reply(id, words(text))
	case "getenv":
		s.reply(id, words(os.Getenv(text)))
	case "where":
		dir, _ := os.Getwd()
		s.reply(id, words(dir))
	case "hang":
		append1("hanging", "x")
	case "received":
		s.reply(id, words(strings.Join(s.received, "\n")))
	case "once":
		append1("once", "x")
		s.reply(id, words("done"))
	case "gate": // waits for the test to open it
		append1("at gate", "x")
		if f, err := os.Open(text); err == nil {
			_, _ = io.Copy(io.Discard, f)
			f.Close()
		}
		s.reply(id, words("through"))
	case "die":
		fmt.Fprint(os.Stderr, strings.Repeat("many words\n", 10_000), "out of cheese\n")
		os.Exit(7)
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "last words": // answers and dies at once
		s.reply(id, words("farewell"))
		os.Exit(0)
	case "close output":
		os.Stdout.Close()
	case "huge":
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`+"\n", id, strings.Repeat("x", maxLine))
	case "large": // short enough for a line, and too large when it is encoded again
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`+"\n", id, strings.Repeat("<", 8<<20))
	case "big":
		s.reply(id, words(strings.Repeat("x", 3<<20)))
	case "noise":
		fmt.Print("\n\r\nTypeError: undefined is not a function\n\x00\xff\xfe\n{\"jsonrpc\":\"1.0\"}\n")
		s.reply(id, words("quiet"))
	case "batch":
		s.send([]obj{{"jsonrpc": "2.0", "method": "notifications/message", "params": obj{}}, {"jsonrpc": "2.0", "id": id, "result": words("batched")}})
	case "ask": // the client's answer to a request of the server
		m := s.ask(text)
		b, _ := json.Marshal(m)
		s.reply(id, words(string(b)))
	case "change":
		s.tools = append(s.tools, text)
		s.send(obj{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
		s.send(obj{"jsonrpc": "2.0", "method": "notifications/progress", "params": obj{}})
		s.reply(id, words("changed"))
	case "child": // leaves a process behind in its group
		c := exec.Command("sleep", "1000")
		_ = c.Start()
		s.reply(id, words(strconv.Itoa(c.Process.Pid)))
	case "pid":
		s.reply(id, words(strconv.Itoa(os.Getpid())))
	case "flags": // of stdin: it must be an ordinary, blocking one
		flags, _, _ := syscall.Syscall(syscall.SYS_FCNTL, 0, syscall.F_GETFL, 0)
		s.reply(id, words(strconv.FormatBool(flags&syscall.O_NONBLOCK != 0)))
	case "unasked": // unsolicited answers, then the answer twice
		s.reply(json.RawMessage("12345"), obj{})
		s.reply(id, words("first"))
		s.reply(id, words("second"))
	case "empty":
		s.send(obj{"jsonrpc": "2.0", "id": id})
	default:
		s.send(obj{"jsonrpc": "2.0", "id": id, "error": obj{"code": -32602, "message": "Unknown tool: " + name}})
	}
}

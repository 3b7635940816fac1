package scripted

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"deckhand/internal/llm"
)

// Tour is the message that makes the script work on a sample repository: it edits, runs commands,
// shows the change and commits it.
const Tour = "Show me a demo"

// step is what the script says and does in one answer of the tour. Path is a file of the sample
// that it edits; otherwise it runs the command.
type step struct {
	text, command string
	path, old, is string
}

const folder = "deckhand-demo"

var steps = []step{
	{text: "I create a sample repository with a test, and run the test.", command: "mkdir -p " + folder + "/tmp && cd " + folder + " && git init -q && git config user.name Demo && git config user.email demo@example.org" +
		` && printf 'total() {\n  echo $(($1 - $2))\n}\n' > total.sh` +
		` && printf '. ./total.sh\nif [ "$(total 2 3)" = 5 ]; then echo "ok: 2 + 3 = 5"; else echo "failed: 2 + 3 = $(total 2 3)"; fi\n' > test.sh` +
		` && git add . && git commit -qm 'Add total' && echo "sample repository: $PWD" && sh test.sh; cd - >/dev/null`},
	{text: "The test fails: `total` subtracts. I fix it.", path: "total.sh", old: "$1 - $2", is: "$1 + $2"},
	{text: "I run the test again.", command: "(cd " + folder + " && sh test.sh)"},
	{text: "This is the change.", command: "git -C " + folder + " --no-pager diff"},
	{text: "I commit it.", command: "git -C " + folder + " commit -qam 'Add numbers in total' && git -C " + folder + " --no-pager log --oneline"},
	{text: "I delete the temporary files. Deleting a folder is rated as risky: unless approvals are off, this command waits for your decision.", command: "rm -rf " + folder + "/tmp && git -C " + folder + " status --short --branch"},
}

const tourEnd = "[scripted demo model] Done: I wrote a test, fixed what it found, and committed the change. A real model decides these steps itself; this script always" +
	" takes the same ones. The result is in the folder " + folder + " of the workspace. To decide about every step, choose \"Always ask\" in Settings → Agent, or start deckhand with --confirm in a terminal, and ask for the demo again."

// tourRejected is the end if the person does not want a step.
const tourRejected = "[scripted demo model] You rejected this step, so the demo ends here. A real model would try something else. Send \"" + Tour + "\" to start again."

// tourFailed is the end if the first step did not work.
const tourFailed = "[scripted demo model] The sample repository could not be created, so the demo ends here. See the output of the command: often the workspace cannot be" +
	" written, or git is missing. A real model would look for a way around it. Send \"" + Tour + "\" to start again."

// rejected is how the result of a rejected call begins.
const rejected = "The user rejected this call"

// samplePlace is where the first step says that it made the repository.
var samplePlace = regexp.MustCompile(`(?m)^sample repository: (\S+)`)

// tour is the next answer of the tour; false if the person did not ask for it.
func tour(req llm.Request) (text string, call *llm.Call, on bool) {
	asked := -1
	for i, m := range req.Messages {
		if m.Role == llm.User && !m.Aside {
			asked = i
		}
	}
	if asked < 0 || !strings.EqualFold(strings.TrimRight(strings.TrimSpace(req.Messages[asked].Text), ".!"), Tour) || !has(req, "execute_bash") || !has(req, "str_replace_editor") {
		return "", nil, false
	}
	n, place := 0, folder
	for _, m := range req.Messages[asked+1:] {
		if m.Role == llm.ToolResult {
			n++
			if strings.HasPrefix(m.Text, rejected) {
				return tourRejected, nil, true
			}
			if found := samplePlace.FindStringSubmatch(m.Text); found != nil {
				place = found[1]
			}
		}
	}
	if n == 1 && place == folder {
		return tourFailed, nil, true
	}
	if n >= len(steps) {
		return tourEnd, nil, true
	}
	s := steps[n]
	name, args := "execute_bash", map[string]string{"command": s.command, "is_input": "false"}
	if s.path != "" {
		name, args = "str_replace_editor", map[string]string{"command": "str_replace", "path": place + "/" + s.path, "old_str": s.old, "new_str": s.is}
	}
	encoded, _ := json.Marshal(args) // texts can always be written
	return s.text, &llm.Call{ID: fmt.Sprintf("call_%d", spoken(req)), Name: name, Args: encoded}, true
}

func has(req llm.Request, tool string) bool {
	return slices.ContainsFunc(req.Tools, func(t llm.Tool) bool { return t.Name == tool })
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/client"
)

// until asks again and again until the answer is yes.
func until(t *testing.T, what string, yes func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !yes() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("never: " + what)
		}
	}
}

// silentOn fails for each secret that a text shows.
func silentOn(t *testing.T, where, text string, secrets ...string) {
	t.Helper()
	for _, s := range secrets {
		if strings.Contains(text, s) {
			t.Errorf("%s shows %s: %.2000s", where, s, text)
		}
	}
}

// commonWords are secrets that would spoil everybody's events.
const commonWords = `"W1":"execute_bash","W2":"awaiting_user_input","W3":"/workspace","W4":"function","W5":"content"`

// A user's secrets change nothing of what another user and that user's model see, and
// nobody learns by printing guesses what another's secrets are.
func TestSecretsAreMaskedForTheirOwnerAlone(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	const adas, bobs, odd = "ghp-ada-4f81c2d7", "ghp-bob-9b3e60aa", "zebra-quartz-17"
	guess := "echo import function content /workspace execute_bash " + odd + " " + adas + " " + bobs
	ada := l.person(t, "ada", steps(shell(guess), shell(`echo "mine $TOKEN"`)), `"secrets_store":{"custom_secrets":{`+commonWords+fmt.Sprintf(`,"TOKEN":%q,"ODD":%q}}`, adas, odd))
	bob := l.person(t, "bob", steps(shell(guess), shell(`echo "mine $TOKEN"`)), fmt.Sprintf(`"secrets_store":{"custom_secrets":{"TOKEN":%q}}`, bobs))
	for _, c := range []struct {
		who        *person
		sees       []string
		seesNot    []string
		said, mine string
	}{
		{bob, []string{odd, adas}, []string{bobs}, "import function content /workspace execute_bash " + odd + " " + adas + " " + api.Masked, "mine " + api.Masked},
		{ada, []string{bobs}, []string{adas, odd}, "import function content /workspace execute_bash " + api.Masked + " " + api.Masked + " " + bobs, "mine " + api.Masked},
	} {
		id := c.who.begin("Look around.")
		streamed := describe(c.who.follow(id, 0, agentIs("awaiting_user_input")))
		stored := describe(c.who.events(id))
		_, exported, _ := c.who.raw("GET", "/api/conversations/"+id+"/trajectory", "")
		var shown strings.Builder
		for _, asked := range c.who.requests() {
			for _, r := range results(asked) {
				shown.WriteString(r.text + "\n")
			}
		}
		for where, text := range map[string]string{"the stream": streamed, "the events": stored, "the export": exported, "the model's input": shown.String()} {
			says(t, text, c.said, c.mine)
			says(t, text, c.sees...)
			silentOn(t, c.who.name+": "+where, text, c.seesNot...)
		}
		says(t, exported, `"function_name":"execute_bash"`, `"agent_state":"awaiting_user_input"`, `"finish_reason":"tool_calls"`)
	}
	ada.checkLists(t, adas)
	ada.checkLimit(t)
	again := bob.begin("Look around again.")
	silentOn(t, "after somebody stored much", describe(bob.follow(again, 0, agentIs("awaiting_user_input"))), bobs)
}

// checkLists looks at what a user is told of secrets that cannot be masked, and sends
// back what was read.
func (p *person) checkLists(t *testing.T, token string) {
	t.Helper()
	list, err := p.client.Secrets(t.Context())
	if err != nil || len(list) != 7 {
		t.Fatalf("%+v %v", list, err)
	}
	for _, s := range list {
		if (s.Warning != "") != strings.HasPrefix(s.Name, "W") {
			t.Errorf("%+v", s)
		}
	}
	_, got, _ := p.raw("GET", "/api/settings", "")
	if status, answer, _ := p.raw("POST", "/api/settings", got); status != 200 || strings.Contains(answer, "not masked") {
		t.Errorf("%d %s", status, answer)
	}
	if again, err := p.client.Secrets(t.Context()); err != nil || fmt.Sprint(again) != fmt.Sprint(list) {
		t.Errorf("sending back what was read makes %+v of %+v, %v", again, list, err)
	}
	p.lab.mind(p.name, steps(shell(`test "$TOKEN" = `+token+` && echo "it is"' kept'; echo "still $TOKEN"`)))
	id := p.begin("Is it kept?")
	says(t, describe(p.follow(id, 0, agentIs("awaiting_user_input"))), "it is kept", "still "+api.Masked)
	status, answer, _ := p.raw("POST", "/api/secrets", `{"name":"SHORT","value":"abc"}`)
	if status != http.StatusCreated || !strings.Contains(answer, "shorter than 8 characters") {
		t.Errorf("%d %s", status, answer)
	}
	if _, answer, _ = p.raw("POST", "/api/settings", `{"secrets_store":{"custom_secrets":{"SHORT":"function"}}}`); !strings.Contains(answer, "SHORT: This secret is stored and works, but it is not masked in output, because it is a common word or path.") {
		t.Error(answer)
	}
}

// checkLimit stores large secrets until no more are taken.
func (p *person) checkLimit(t *testing.T) {
	t.Helper()
	large := strings.Repeat("0123456789abcde-", 2<<10)
	for i := range 10 {
		status, answer, _ := p.raw("POST", "/api/secrets", fmt.Sprintf(`{"name":"LARGE_%d","value":"%d%s"}`, i, i, large))
		if status == http.StatusCreated {
			continue
		}
		if i < 2 || status != http.StatusUnprocessableEntity || !strings.Contains(answer, `"value"`) || !strings.Contains(answer, "128 KiB") {
			t.Errorf("%d: %d %s", i, status, answer)
		}
		status, answer, _ = p.raw("POST", "/api/settings", fmt.Sprintf(`{"secrets_store":{"custom_secrets":{"MORE":%q}}}`, large))
		if status != http.StatusUnprocessableEntity || !strings.Contains(answer, "secrets_store") {
			t.Errorf("%d %s", status, answer)
		}
		return
	}
	t.Error("there is no limit")
}

// A secret that was changed or removed stays masked as long as a shell has it, and is
// forgotten then.
func TestSecretInUseStaysMasked(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	const old, changed = "first-value-71c0", "other-value-88d1"
	store := func(value string) string {
		return fmt.Sprintf(`"secrets_store":{"custom_secrets":{"TOKEN":%s}}`, value)
	}
	p := l.person(t, "carol", steps(shell(`echo "have $TOKEN."`)), store(`"`+old+`"`))
	id := p.create("Print it.")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	for _, value := range []string{`"` + changed + `"`, "null"} {
		p.set(store(value))
		silentOn(t, "the running shell", describe(p.ask(id, "Print it again, and "+old, "awaiting_user_input")), old, changed)
	}
	silentOn(t, "what was shown before", describe(p.events(id)), old, changed)
	seen := p.begin("I remember " + old + " and " + changed)
	p.drop(id)
	until(t, "a removed secret is forgotten", func() bool {
		text := describe(p.events(seen))
		return strings.Contains(text, old) && strings.Contains(text, changed)
	})
}

// onDisk names the files of a data dir that show a secret, and gives the journals of
// runners. What went meanwhile, or belongs to another user of a sandbox, is passed over.
func onDisk(t *testing.T, dir string, secrets birds) (found []string, journals string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		var text []byte
		if err == nil && d.Type().IsRegular() {
			text, err = os.ReadFile(path)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err == nil && d.Name() == "journal" {
			journals += string(text)
		}
		if len(secrets.in(text)) > 0 {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, journals
}

// letGo makes the file go beside the file begun, wherever a driver keeps workspaces.
func letGo(t *testing.T, dir string) {
	t.Helper()
	made := false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "begun" {
			made, err = true, os.WriteFile(filepath.Join(filepath.Dir(path), "go"), nil, 0o644)
		}
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			return nil // the kernel's own folder below a mount, or one that is being removed
		}
		return err
	})
	if err != nil || !made {
		t.Fatal(made, err)
	}
}

// What a command prints is nowhere on disk: not while it runs, not while its result
// waits for a server, and not afterwards.
func TestPrintedSecretsAreNotOnDisk(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	secrets := birds{}
	canary := secrets.put("the custom secret")
	nowhere := func(when string) {
		t.Helper()
		if found, _ := onDisk(t, l.dir, secrets); len(found) > 0 {
			t.Errorf("%s the secret is in %v", when, found)
		}
	}
	// With a time of its own the call waits for the command, however long the rest of this test takes.
	waits := use("execute_bash", map[string]any{"timeout": 600,
		"command": `echo "first $CANARY"; touch begun; until test -e go; do sleep 0.02; done; echo "second $CANARY"`})
	p := l.person(t, "dora", steps(shell(`echo "zeroth $CANARY"; seq -f "%g $CANARY in a long output" 3000`), waits), fmt.Sprintf(`"secrets_store":{"custom_secrets":{"CANARY":%q}}`, canary))
	id := p.create("Print it.")
	defer func() { p.drop(id) }()
	until(t, "the command began", func() bool {
		_, err := p.client.ReadFile(t.Context(), id, "begun")
		return err == nil
	})
	nowhere("while the command runs")
	p.set(`"secrets_store":{"custom_secrets":{"CANARY":null}}`) // the shell has it all the same
	l.stop()
	letGo(t, filepath.Join(l.dir, "boxes", id))
	until(t, "the result waits", func() bool {
		_, journals := onDisk(t, l.dir, birds{})
		return strings.Contains(journals, `"done":true`)
	})
	nowhere("while its result waits")
	again := serve(t, l.dir, withSandbox(t, l.driver)...)
	p.base, p.client = again.base, client.New(again.base, p.key)
	p.follow(id, 0, agentIs("awaiting_user_input"))
	var ran []string
	for _, it := range p.events(id) {
		if it.Event.Observation == "run" {
			var e struct{ Content string }
			if err := json.Unmarshal(it.Raw, &e); err != nil {
				t.Fatal(err)
			}
			ran = append(ran, e.Content)
		}
	}
	says(t, strings.Join(ran, "\n"), "zeroth "+api.Masked, "first "+api.Masked, "second "+api.Masked)
	nowhere("at the end")
}

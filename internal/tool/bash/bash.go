// Package bash is the tool that runs shell commands.
package bash

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"strings"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/tool"
	"deckhand/internal/v0/form"
)

//go:embed bash.md
var description string

//go:embed schema.json
var schema []byte

// Tool implements tool.Tool.
type Tool struct{}

// Name is the tool's.
const Name = "execute_bash"

// hardTimeout bounds a command for which the model gave no timeout.
const hardTimeout = 120 * time.Second

// Spec implements tool.Tool.
func (Tool) Spec() tool.Spec {
	return tool.Spec{Name: Name, Description: strings.TrimSpace(description), Schema: schema, Sandbox: true}
}

type args struct {
	Command string   `json:"command"`
	IsInput flag     `json:"is_input"`
	Timeout *float64 `json:"timeout"`
}

// flag is a boolean that models also write as a word.
type flag bool

func (f *flag) UnmarshalJSON(b []byte) error {
	switch strings.ToLower(strings.Trim(string(b), `"`)) {
	case "true":
		*f = true
	case "false", "null", "":
		*f = false
	default:
		return fmt.Errorf("is_input is true or false")
	}
	return nil
}

// Run implements tool.Tool.
func (Tool) Run(ctx context.Context, open tool.Box, call tool.Call) (tool.Result, error) {
	var a args
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return failed("The arguments of execute_bash are not valid: %v", err), nil
	}
	if a.Timeout != nil && (math.IsNaN(*a.Timeout) || *a.Timeout <= 0 || *a.Timeout > 24*3600) {
		return failed("timeout is a number of seconds, more than 0 and at most a day."), nil
	}
	c := sandbox.Command{ID: call.ID, Again: call.Repeats(), Shell: call.Shell, Text: a.Command, Input: bool(a.IsInput), Soft: sandbox.SoftTimeout, Hard: hardTimeout}
	if a.Timeout != nil { // who gives a time wants to wait for so long
		c.Soft, c.Hard = 0, time.Duration(*a.Timeout*float64(time.Second))
	}
	box, err := open(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	r, err := box.Exec(ctx, c, call.Live)
	if err != nil {
		return tool.Result{}, err
	}
	return result(r, box), nil
}

func failed(format string, a ...any) tool.Result {
	return tool.Result{Failed: true, Text: fmt.Sprintf(format, a...)}
}

// result puts the runner's answer into words.
func result(r sandbox.Result, box *sandbox.Sandbox) tool.Result {
	info := box.Info()
	d := form.RunDetails{ExitCode: &r.Exit, PID: &r.PID, Username: info.User, Hostname: info.Host, WorkingDir: r.Dir}
	d.Folder = folder(info.Workspace, r.Dir)
	out := tool.Result{Text: r.Output, Follows: r.Previous, Continues: r.Wait != ""}
	if box.TellRestart() && !r.Lost {
		d.Prefix = "[The sandbox ended by itself and was restarted before this command. Variables and background processes are lost; files are kept.]\n"
	}
	if r.Previous {
		d.Prefix += "[Below is the output of the previous command.]\n"
	}
	switch {
	case r.Lost:
		out.Unknown = true
		out.Text = box.Ended() + " while this command ran. It was restarted, and the outcome of the command is unknown: it may have done its work, a part of it, or nothing. Look before you run it again."
	case r.Refused != "":
		out.Failed = true
		out.Text = strings.TrimSpace(r.Output + "\n" + r.Refused)
	case r.Wait == sandbox.SoftWait:
		d.Suffix = fmt.Sprintf("\n[The command has no new output after %d seconds. %s]", int(sandbox.SoftTimeout.Seconds()), options)
	case r.Wait == sandbox.HardWait:
		d.Suffix = "\n[The command timed out and still runs. " + options + "]"
	default:
		d.Suffix = fmt.Sprintf("\n[The command completed with exit code %d.]", r.Exit)
		if r.Shrink {
			d.Suffix += " [The sandbox is above its disk limit, or the server's disk is nearly full, so this command could not make or write files. Delete files to continue.]"
		}
		if r.NewShell {
			d.Suffix += " [The shell ended with it; the next command gets a fresh one.]"
		}
	}
	if r.Whole != "" {
		d.Suffix += "\n[The whole output is in " + r.Whole + ".]"
	}
	out.Details, _ = json.Marshal(d)
	return out
}

// folder is where the shell is: below the workspace, or the whole path of a folder outside; nil if that is not known.
func folder(workspace, dir string) *string {
	if workspace == "" || dir == "" {
		return nil
	}
	dir = path.Clean(dir)
	if rel, below := strings.CutPrefix(dir+"/", workspace+"/"); below {
		dir = strings.TrimSuffix(rel, "/")
	}
	return &dir
}

// options is what can be done about a command that still runs.
const options = "You may wait with an empty command, send input to it with is_input, or interrupt it with C-c as input; or give a timeout next time."

package v0

import (
	"fmt"
	"strings"

	stdjson "encoding/json"

	"deckhand/internal/session"
	"deckhand/internal/v0/form"
)

// silent are the observations that say nothing to the model.
var silent = map[string]bool{"agent_state_changed": true, "condense": true, "null": true}

// pastExtras are those extras of all kinds of observations that mean something to us.
type pastExtras struct {
	Command  string `json:"command"`
	Hidden   bool   `json:"hidden"`
	Metadata struct {
		ExitCode   *int   `json:"exit_code"`
		WorkingDir string `json:"working_dir"`
		Prefix     string `json:"prefix"`
		Suffix     string `json:"suffix"`
	} `json:"metadata"`
	ExitCode *int               `json:"exit_code"` // where it stood once
	Diff     string             `json:"diff"`
	Images   []string           `json:"image_urls"`
	Tasks    stdjson.RawMessage `json:"task_list"`

	Repo         string              `json:"repo_name"`
	Dir          string              `json:"repo_directory"`
	Branch       string              `json:"repo_branch"`
	RepoSays     string              `json:"repo_instructions"`
	Additional   string              `json:"additional_agent_instructions"`
	Instructions string              `json:"conversation_instructions"`
	Knowledge    []session.Knowledge `json:"microagent_knowledge"`
}

// observe finds out what an observation means.
func (p *Past) observe(e pastItem) {
	x := form.Details[pastExtras](stdjson.RawMessage(e.Extras))
	content := text(e.Content)
	switch {
	case silent[p.Kind]:
		return
	case p.Kind == "recall":
		p.Instructions, p.Note = x.Instructions, x.recalled()
		return
	}
	m, _ := e.metadata()
	r := &session.ToolReturned{Outcome: session.Succeeded, Output: content}
	if callName.MatchString(m.id) {
		r.ID = m.id
	}
	subject := ""
	switch p.Kind {
	case "run":
		x.ran(r)
		subject = " (" + x.Command + ")"
	case "run_ipython":
		r.Images = fitting(rawOf(x.Images), MaxImages, checkImageForm)
	case "edit":
		r.Output = form.Or(content, x.Diff)
	case "task_tracking":
		if form.KindOf(x.Tasks) == '[' {
			r.Details, _ = stdjson.Marshal(form.TaskDetails{TaskList: x.Tasks})
		}
	case "error":
		r.Outcome = session.FailedRun
	case "user_rejected":
		r.Outcome, r.Output = session.Rejected, form.Or(content, textRejected)
	}
	p.Result = r
	if r.Output != "" && !x.Hidden {
		p.Note = "What came of " + p.Kind + subject + ": " + r.Output
	}
}

func rawOf(list []string) []byte {
	b, _ := stdjson.Marshal(list) // strings are always JSON
	return b
}

// ran puts the words around the output of a command, as the model saw them.
func (x pastExtras) ran(r *session.ToolReturned) {
	code := x.Metadata.ExitCode
	if code == nil {
		code = x.ExitCode
	}
	suffix := x.Metadata.Suffix
	if suffix == "" && code != nil && *code >= 0 {
		suffix = fmt.Sprintf("\n[The command completed with exit code %d.]", *code)
	}
	r.Output = x.Metadata.Prefix + r.Output + suffix
	if x.Metadata.WorkingDir != "" {
		r.Output += "\n[Current working directory: " + x.Metadata.WorkingDir + "]"
	}
	if code != nil && *code > 0 {
		r.Outcome = session.FailedRun
	}
}

// recalled is what the model was told beside a message, in our words. Instructions of
// the conversation are not among it: they are kept with the conversation.
func (x pastExtras) recalled() string {
	var b strings.Builder
	add := func(title, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s:\n%s\n\n", title, text)
		}
	}
	if x.Repo != "" {
		where := x.Repo
		if x.Dir != "" {
			where += " in " + x.Dir
		}
		if x.Branch != "" {
			where += ", branch " + x.Branch
		}
		add("The repository", where)
	}
	add("What the repository says", x.RepoSays)
	add("Additional instructions", x.Additional)
	for _, k := range x.Knowledge {
		add("Knowledge about "+k.Name, k.Content)
	}
	return strings.TrimSpace(b.String())
}

// Package retired describes tools that no agent has any more. Conversations that were
// taken over from a legacy server, and recordings, have calls of them.
package retired

import (
	"encoding/json"
	"strconv"
	"strings"

	"deckhand/internal/risk"
	"deckhand/internal/tool"
	"deckhand/internal/tool/bash"
	"deckhand/internal/v0/form"
)

// Descriptors are those of the retired tools.
func Descriptors() []tool.Descriptor {
	browse := form.Browse()
	return []tool.Descriptor{
		{
			Name: "execute_ipython_cell", Retired: true,
			Rate: risk.Fixed(risk.Unknown, "It runs Python code, which cannot be analyzed."),
			Legacy: &form.Form{Action: pythonAction, Observe: pythonObservation, Actions: map[string]form.Action{
				"run_ipython": {Read: func(w *form.Writer, a form.Recorded) error { w.Str("code", a.Args.Text("code")); return nil }},
			}},
			Instead: &tool.Instead{Tool: bash.Name, Read: script},
			Display: tool.Display{Content: tool.Code, Main: "code"},
		},
		{
			Name: "edit_file", Retired: true,
			Rate: risk.ByArguments(func(a risk.Arguments) (risk.Rating, string) {
				name, _ := a.Text("path")
				return risk.WritePath(name)
			}),
			Legacy: &form.Form{Action: draftAction, Observe: func(w *form.Writer, r form.Result) {
				w.Edited(r, form.Details[form.EditDetails](r.Details), "llm_based_edit", true)
			}},
			Display: tool.Display{Content: tool.File, File: &tool.FileArguments{Path: "path", After: "content"}},
		},
		{
			Name: "browse", Retired: true, Legacy: &browse,
			Rate: risk.ByArguments(func(a risk.Arguments) (risk.Rating, string) {
				url, _ := a.Text("url")
				return risk.Address(url)
			}),
			Display: tool.Display{Content: tool.Page, Main: "url", ReadOnly: true},
		},
		{
			Name: "request_condensation", Retired: true,
			Rate: risk.Fixed(risk.Low, "It only thinks, plans or ends the turn."),
			Legacy: &form.Form{Action: condenseAction, Actions: map[string]form.Action{
				"condensation_request": {Read: func(*form.Writer, form.Recorded) error { return nil }},
			}},
			Display: tool.Display{Content: tool.Hidden, ReadOnly: true},
		},
		{
			Name: "reject", Retired: true,
			Rate:    risk.Fixed(risk.Low, "It only thinks, plans or ends the turn."),
			Display: tool.Display{Content: tool.Rejection, ReadOnly: true, View: rejectionView},
		},
	}
}

// rejectionView shows the reason, which legacy servers put among the outputs.
func rejectionView(raw json.RawMessage) tool.View {
	var a struct {
		Outputs struct {
			Reason string `json:"reason"`
		} `json:"outputs"`
	}
	_ = json.Unmarshal(raw, &a)
	return tool.View{Title: a.Outputs.Reason}
}

func pythonAction(w *form.Writer, c form.Call) {
	code := c.Given.Text("code")
	w.Call(c, "run_ipython", "Running Python code interactively: "+code)
	w.Str("code", code)
	w.Str("thought", c.Thought)
	w.Flag("include_extra", true)
	w.Waits(c)
	w.Num("security_risk", int64(c.Risk))
	w.Str("kernel_init_code", "")
	w.Shut('}')
}

func pythonObservation(w *form.Writer, r form.Result) {
	w.Result(r, "run_ipython", "Code executed in IPython cell.", r.Output)
	w.Str("code", r.Given.Text("code"))
	w.Strs("image_urls", form.Details[form.PythonDetails](r.Details).ImageURLs)
	w.Shut('}')
	w.Flag("success", true)
}

// script runs the code of a notebook cell as a script of its own: there is no kernel
// any more, so what one cell defined is not known to the next.
func script(w *form.Writer, a form.Recorded) error {
	code, err := a.Str("code")
	if err != nil {
		return err
	}
	mark := "PYTHON"
	for n := 0; strings.Contains(code, mark); n++ {
		mark = "PYTHON" + strconv.Itoa(n)
	}
	w.Str("command", "python3 - <<'"+mark+"'\n"+strings.TrimSuffix(code, "\n")+"\n"+mark)
	return a.Limit(w)
}

// draftAction is the editor in which a second model applies a draft.
func draftAction(w *form.Writer, c form.Call) {
	w.Call(c, "edit", "")
	w.Str("path", c.Given.Text("path"))
	w.Str("command", "")
	w.Lit("file_text", "null")
	w.Lit("old_str", "null")
	w.Lit("new_str", "null")
	w.Lit("insert_line", "null")
	w.Str("content", c.Given.Text("content"))
	w.Integer("start", c.Given, "1")
	w.Integer("end", c.Given, "-1")
	w.Rated(c)
	w.Str("impl_source", "llm_based_edit")
	w.Shut('}')
}

func condenseAction(w *form.Writer, c form.Call) {
	w.Call(c, "condensation_request", "Requesting a condensation of the conversation's history.")
	w.Shut('}')
}

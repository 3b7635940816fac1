package edit

import (
	"deckhand/internal/v0/form"
)

// action is a read or an edit: one tool to the model, two kinds to clients.
func action(w *form.Writer, c form.Call) {
	path := c.Given.Text("path")
	if c.Given.Text("command") == "view" {
		w.Call(c, "read", "Reading file: "+path)
		w.Str("path", path)
		w.Num("start", 0)
		w.Num("end", -1)
		w.Rated(c)
		w.Str("impl_source", "oh_aci")
		w.Array("view_range", c.Given["view_range"], "null")
		w.Shut('}')
		return
	}
	w.Call(c, "edit", "")
	w.Str("path", path)
	w.Str("command", c.Given.Text("command"))
	w.Opt("file_text", c.Given.Optional("file_text"))
	w.Opt("old_str", c.Given.Optional("old_str"))
	w.Opt("new_str", c.Given.Optional("new_str"))
	w.Integer("insert_line", c.Given, "null")
	w.Str("content", "")
	w.Num("start", 1)
	w.Num("end", -1)
	w.Rated(c)
	w.Str("impl_source", "oh_aci")
	w.Shut('}')
}

func observe(w *form.Writer, r form.Result) {
	d := form.Details[form.EditDetails](r.Details)
	command := r.Given.Text("command")
	if command == "" && d.NewContent != nil {
		command = "edit" // the arguments are not repeated, but something was changed
	}
	if command == "" || command == "view" {
		viewed(w, r)
		return
	}
	w.Edited(r, d, "oh_aci", command != "create")
}

func viewed(w *form.Writer, r form.Result) {
	d := form.Details[form.ReadDetails](r.Details)
	path := form.Or(d.Path, r.Given.Text("path"))
	w.Result(r, "read", "I read the file "+path+".", r.Output)
	w.Str("path", path)
	w.Str("impl_source", form.Or(d.ImplSource, "oh_aci"))
	w.Shut('}')
}

func readRead(w *form.Writer, a form.Recorded) error {
	w.Str("command", "view")
	if err := a.Copy(w, "path", "path"); err != nil {
		return err
	}
	if form.KindOf(a.Args["view_range"]) == '[' {
		w.Raw("view_range", a.Args["view_range"])
	}
	return nil
}

func readCreate(w *form.Writer, a form.Recorded) error {
	w.Str("command", "create")
	if err := a.Copy(w, "path", "path"); err != nil {
		return err
	}
	return a.Copy(w, "content", "file_text")
}

// readEdit reads an edit by commands, and the draft of a whole file, which is its text.
func readEdit(w *form.Writer, a form.Recorded) error {
	command := a.Args.Text("command")
	if command == "" {
		from, _ := a.Args.Number("start")
		to, limited := a.Args.Number("end")
		if from > 1 || limited && to != -1 {
			return form.LeftOut("A recorded edit was left out: it was a draft of a part of a file, which a second model had to apply.")
		}
		return readCreate(w, a)
	}
	w.Str("command", command)
	if err := a.Copy(w, "path", "path"); err != nil {
		return err
	}
	for _, field := range []string{"file_text", "old_str", "new_str"} {
		switch form.KindOf(a.Args[field]) {
		case 0, 'n':
		case '"':
			w.Str(field, a.Args.Text(field))
		default:
			return &form.FieldError{Field: "args." + field, Message: "Must be a string."}
		}
	}
	if _, ok := a.Args.Number("insert_line"); ok {
		w.Integer("insert_line", a.Args, "0")
	}
	return nil
}

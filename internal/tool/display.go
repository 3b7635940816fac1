package tool

import "encoding/json"

// Content is what a tool's calls are about, and so how they and their results are shown.
// The page chooses a card by it, so values are only added.
type Content string

// The contents.
const (
	// Plain is a name and arguments, and the output below. It is the default.
	Plain Content = "plain"
	// Command is a command line; its output may be long and comes while it runs.
	Command Content = "command"
	// Code is a piece of a program; the details may have the pictures that it drew.
	Code Content = "code"
	// File is a file that is looked at or changed; the details have the change as a diff.
	File Content = "file"
	// Page is a web page; the details have its address and perhaps a picture.
	Page Content = "page"
	// Checklist is a list of tasks. The call has all of it, so the result is not shown.
	Checklist Content = "checklist"
	// Thought is what the agent thinks. The result is not shown.
	Thought Content = "thought"
	// Message is the agent's last words to the person: nothing is shown of the call,
	// and the result as words.
	Message Content = "message"
	// Rejection is why the agent rejected the task, in the title.
	Rejection Content = "rejection"
	// Delegated is a conversation with another agent; the details have its id.
	Delegated Content = "conversation"
	// Hidden is nothing that people need to see: neither the call nor its result.
	Hidden Content = "hidden"
)

// Display is how people see a tool.
type Display struct {
	Content Content
	// Main is the argument, a text, that a person reads first and edits alone when they
	// are asked; "" if it takes all of them.
	Main string
	// ReadOnly says that no call changes files of the workspace. See View.ReadOnly.
	ReadOnly bool
	// File names the arguments of every call of a tool whose content is File. See View.File.
	File *FileArguments
	// View is what is shown of a call; nil for the name and the arguments. Arguments are
	// the model's: what does not make sense is shown as well as it can be.
	View func(args json.RawMessage) View
}

// View is what is shown of one call. Texts are as the model wrote them: callers that print them
// remove terminal control sequences.
type View struct {
	// Title is one line.
	Title string
	// More is the less important end of it.
	More string
	// Text is a command or a thought, of any length. Input says that the text is typed
	// into what runs already.
	Text  string
	Input bool
	Items []Item
	// Before and After are the part of a file that changes, and Changes says that
	// they are given.
	Before, After string
	Changes       bool
	// ReadOnly says that this call changes no files of the workspace.
	ReadOnly bool
	// File names the arguments of this call that say what happens to a file.
	File *FileArguments
	// Whole says that all of this together is the whole call: a person can decide about
	// it without seeing the arguments themselves.
	Whole bool
}

// FileArguments are the names of arguments. Those of the arguments that a call ignores are "".
type FileArguments struct {
	// Path is where the file is, and Lines the first and the last line to read.
	Path, Lines string
	// Before is the text that is replaced by After. Creates says that After is the whole file.
	Before, After string
	Creates       bool
}

// Item is one of a checklist.
type Item struct {
	Title        string
	Done, Active bool
}

// Show returns how people see a call.
func Show(name string, args json.RawMessage) (Display, View) {
	d := Describe(name).Display
	if d.View == nil {
		return d, View{}
	}
	return d, d.View(args)
}

// Main returns the main argument of a call and its name; false if the call has none.
func Main(tool string, args json.RawMessage) (name, text string, ok bool) {
	name = Describe(tool).Display.Main
	var all map[string]json.RawMessage
	if name == "" || json.Unmarshal(args, &all) != nil || len(all[name]) == 0 || all[name][0] != '"' {
		return "", "", false
	}
	return name, text, json.Unmarshal(all[name], &text) == nil
}

// WithMain returns the arguments with another text for the main one.
func WithMain(tool string, args json.RawMessage, text string) (json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(args, &all); err != nil {
		return nil, err
	}
	var err error
	if all[Describe(tool).Display.Main], err = json.Marshal(text); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

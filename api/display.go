package api

// Display is how people see a tool call, as the tool declares it. Contents and fields are
// only added.
type Display struct {
	Content string `json:"content" enum:"plain,command,code,file,page,checklist,thought,message,rejection,conversation,hidden" doc:"What the call is about, and so how it is shown. Treat values that you do not know as plain."`
	Title   string `json:"title" doc:"One line about the call. Empty if the main argument or the name of the tool says it."`
	Main    string `json:"main" doc:"Argument, a text, that says most and can be edited alone before approval. Empty if none does."`
	// ReadOnly says that clients need not look at the workspace again after the call.
	ReadOnly bool `json:"read_only,omitzero" doc:"Whether the call leaves the files of the workspace as they are."`
	Input    bool `json:"input,omitzero" doc:"Whether the main argument is typed into a command that is already running."`
	// File is present if Content is file.
	File *FileDisplay `json:"file,omitzero" doc:"Which arguments say what happens to a file."`
}

// FileDisplay names the arguments of a call that reads or changes a file. Arguments that
// are not named have no effect on the text of the file.
type FileDisplay struct {
	Path    string `json:"path" doc:"Argument with the path of the file."`
	Lines   string `json:"lines,omitzero" doc:"Argument with the first and the last line to read, in an array."`
	Before  string `json:"before,omitzero" doc:"Argument with the text that is replaced."`
	After   string `json:"after,omitzero" doc:"Argument with the text that is put there."`
	Creates bool   `json:"creates,omitzero" doc:"Whether the text is the whole file."`
}

package api

// Commands is the response of GET …/commands.
type Commands struct {
	Commands []Command `json:"commands" doc:"Commands, sorted by name."`
}

// Command is a prompt that is sent by name.
type Command struct {
	Name         string  `json:"name" doc:"Name of the command, without the slash. dir:name for a file in a folder."`
	Description  string  `json:"description"`
	ArgumentHint string  `json:"argument_hint" doc:"Arguments as shown to users, such as [number]."`
	Source       string  `json:"source" enum:"builtin,settings,repository" doc:"Source of the command. A repository command whose name is already taken has the prefix repo:."`
	File         *string `json:"file" doc:"File of the command, relative to the repository; null for commands from other sources."`
}

// RunCommand is the body of POST …/commands.
type RunCommand struct {
	Name      string        `json:"name" minLength:"1" maxLength:"200" doc:"Name of the command, without the slash."`
	Arguments Opt[string]   `json:"arguments,omitzero" maxLength:"1048576" doc:"Arguments, separated by spaces. Quotes keep words together."`
	ImageURLs Opt[[]string] `json:"image_urls,omitzero" maxItems:"50" doc:"Images of the message: http(s) or data:image URLs."`
	FileURLs  Opt[[]string] `json:"file_urls,omitzero" maxItems:"50" doc:"Files of the message, as paths in the workspace."`
}

// OwnCommands is the response of GET /api/commands.
type OwnCommands struct {
	Commands []OwnCommand `json:"commands" doc:"Your own commands, sorted by name."`
}

// OwnCommand is a slash command in the settings of a user.
type OwnCommand struct {
	Name string `json:"name" doc:"Name of the command, without the slash."`
	Text string `json:"text" doc:"Markdown, with optional front matter (description, argument-hint). $ARGUMENTS is replaced with all arguments, $1 to $9 with single arguments."`
}

// SetOwnCommand is the body of PUT /api/commands/{name}.
type SetOwnCommand struct {
	Text string `json:"text" maxLength:"65536" doc:"Markdown, with optional front matter (description, argument-hint). $ARGUMENTS is replaced with all arguments, $1 to $9 with single arguments."`
}

// Compact is the body of POST …/compact.
type Compact struct {
	Instructions Opt[string] `json:"instructions,omitzero" maxLength:"4000" doc:"What the summary should keep or leave out."`
}

// Mentions is the response of GET …/mentions.
type Mentions struct {
	Mentions []Mention `json:"mentions" doc:"Matches: files and folders before symbols, most recently changed first."`
}

// Mention is a file, a folder or a symbol of the workspace that a message can name.
type Mention struct {
	Kind string `json:"kind" enum:"file,folder,symbol"`
	Name string `json:"name" doc:"Name of the symbol, or the last part of the path."`
	Path string `json:"path" doc:"Path relative to the workspace. A folder ends with a slash."`
	Line int    `json:"line" doc:"Line of a symbol; 0 for files and folders."`
}

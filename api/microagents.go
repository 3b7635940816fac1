package api

// Microagents is the response of GET …/microagents.
type Microagents struct {
	Microagents []Microagent `json:"microagents"`
}

// Microagent is text for the agent that always applies, or that a message triggers.
type Microagent struct {
	Name     string            `json:"name" doc:"Path of the microagent's file, without the extension."`
	Type     string            `json:"type" enum:"repo,knowledge" doc:"repo: always shown to the agent. knowledge: shown when a message contains one of the triggers."`
	Content  string            `json:"content"`
	Triggers []string          `json:"triggers" doc:"Words in a message that activate the microagent. A task, which has inputs, is activated by a slash and its name."`
	Inputs   []MicroagentInput `json:"inputs" doc:"Values that a task needs from the user."`
	Tools    []string          `json:"tools" doc:"Names of the MCP servers that the microagent uses."`
}

// MicroagentInput is a value that the user must provide for a task.
type MicroagentInput struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

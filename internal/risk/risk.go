// Package risk rates what an agent wants to do before it does it, by rules alone:
// no model is asked. A shell command is parsed into a syntax tree, and every
// command in it is rated; the worst one counts.
//
// The rules know what is harmless and doubt the rest. A list of what is dangerous
// would be got around; here, whatever is not understood is never Low. Nobody
// should take Low for a promise: the sandbox contains what the rules overlook.
//
// The package also knows the patterns by which a person allows calls for good.
package risk

import (
	"encoding/json"
	"fmt"
)

// Rating is how dangerous a call is, in the numbers that clients know.
type Rating int

// The ratings.
const (
	// Unknown is what nobody can tell before it runs.
	Unknown Rating = -1
	// Low only reads, or changes nothing that outlives the command.
	Low Rating = 0
	// Medium changes the project, installs something or runs code of the project.
	Medium Rating = 1
	// High touches the system, sends data away or cannot be undone.
	High Rating = 2
)

// String is the name that models and people use.
func (r Rating) String() string {
	switch r {
	case Unknown:
		return "UNKNOWN"
	case Low:
		return "LOW"
	case Medium:
		return "MEDIUM"
	case High:
		return "HIGH"
	default:
		return fmt.Sprintf("Rating(%d)", int(r))
	}
}

// Worse reports whether r is to be feared more than o. What is unknown lies
// between Medium and High.
func (r Rating) Worse(o Rating) bool { return r.weight() > o.weight() }

func (r Rating) weight() int {
	switch r {
	case Low:
		return 0
	case Medium:
		return 1
	case Unknown:
		return 2
	default:
		return 3
	}
}

// verdict collects ratings and keeps the worst, with the first reason for it.
type verdict struct {
	rating Rating
	reason string
}

func (v *verdict) add(r Rating, reason string) {
	if v.reason == "" || r.Worse(v.rating) {
		v.rating, v.reason = r, reason
	}
}

// Rate rates a call of a tool. The reason is a sentence for the person who is
// asked. readOnly is what the tool says of itself; a tool that is not one of
// ours is not believed.
func Rate(tool string, readOnly bool, args json.RawMessage) (Rating, string) {
	switch tool {
	case "think", "finish", "task_tracker", "request_condensation":
		return Low, "It only thinks, plans or ends the turn."
	case "grep", "glob", "skill":
		return Low, "It only reads."
	case "delegate":
		return Medium, "It hands a task to another agent."
	case "create_pr", "create_mr", "create_bitbucket_pr", "create_gitea_pr":
		return Medium, "It opens a pull request, which others see."
	case "comment_on_issue":
		return Medium, "It writes where others read."
	}
	a, ok := parse(args)
	if !ok {
		return Unknown, "Its arguments cannot be read."
	}
	switch tool {
	case "execute_bash":
		return a.bash()
	case "execute_ipython_cell":
		return Unknown, "It runs Python code, which is not looked into."
	case "str_replace_editor", "edit_file":
		return a.editor(tool)
	case "browser":
		return a.browser()
	case "fetch", "browse":
		return a.fetch()
	case "web_search":
		return a.search()
	case "read_issue":
		return a.issue()
	}
	if readOnly {
		return Medium, "This tool belongs to an MCP server. It claims to be read-only, but its arguments leave the conversation."
	}
	return Unknown, "This tool belongs to an MCP server, and its effect is unknown."
}

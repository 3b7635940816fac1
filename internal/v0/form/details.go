package form

import "encoding/json"

// What ToolReturned.Details may hold, by the kind of tool. A tool leaves out what it
// does not know. The names are stored, so they only ever gain fields.

// RunDetails describe how a shell command ended.
type RunDetails struct {
	// ExitCode is -1 while the command still runs; absent if none was learned.
	ExitCode *int `json:"exit_code,omitempty"`
	// PID is absent if unknown.
	PID               *int   `json:"pid,omitempty"`
	Username          string `json:"username,omitempty"`
	Hostname          string `json:"hostname,omitempty"`
	WorkingDir        string `json:"working_dir,omitempty"`
	PyInterpreterPath string `json:"py_interpreter_path,omitempty"`
	// Prefix and Suffix are our words around the output.
	Prefix string `json:"prefix,omitempty"`
	Suffix string `json:"suffix,omitempty"`
	Hidden bool   `json:"hidden,omitempty"`
}

// PythonDetails describe what a notebook cell showed beside its text.
type PythonDetails struct {
	ImageURLs []string `json:"image_urls,omitempty"`
}

// EditDetails describe a change of one file.
type EditDetails struct {
	Path string `json:"path,omitempty"`
	// PrevExist is taken from the command when absent.
	PrevExist  *bool   `json:"prev_exist,omitempty"`
	OldContent *string `json:"old_content,omitempty"`
	NewContent *string `json:"new_content,omitempty"`
	Diff       *string `json:"diff,omitempty"`
	ImplSource string  `json:"impl_source,omitempty"`
}

// ReadDetails describe a file that was looked at.
type ReadDetails struct {
	Path       string `json:"path,omitempty"`
	ImplSource string `json:"impl_source,omitempty"`
}

// BrowseDetails describe the page a browser is on.
type BrowseDetails struct {
	URL                    string          `json:"url,omitempty"`
	Screenshot             string          `json:"screenshot,omitempty"`
	ScreenshotPath         *string         `json:"screenshot_path,omitempty"`
	SetOfMarks             string          `json:"set_of_marks,omitempty"`
	Error                  bool            `json:"error,omitempty"`
	OpenPagesURLs          []string        `json:"open_pages_urls,omitempty"`
	ActivePageIndex        int             `json:"active_page_index,omitempty"`
	DOM                    json.RawMessage `json:"dom_object,omitempty"`
	AXTree                 json.RawMessage `json:"axtree_object,omitempty"`
	ElementProperties      json.RawMessage `json:"extra_element_properties,omitempty"`
	LastBrowserAction      string          `json:"last_browser_action,omitempty"`
	LastBrowserActionError string          `json:"last_browser_action_error,omitempty"`
	FocusedElement         string          `json:"focused_element_bid,omitempty"`
	FilterVisibleOnly      bool            `json:"filter_visible_only,omitempty"`
}

// MCPDetails hold the result of a foreign tool as its server sent it.
type MCPDetails struct {
	Result json.RawMessage `json:"result,omitempty"`
}

// TaskDetails hold the task list as it is after the call.
type TaskDetails struct {
	TaskList json.RawMessage `json:"task_list,omitempty"`
}

// DelegateDetails hold what another agent handed back.
type DelegateDetails struct {
	Outputs json.RawMessage `json:"outputs,omitempty"`
}

// Details decodes as much as fits: a field of a wrong type is left out, the others
// are still worth showing.
func Details[T any](raw json.RawMessage) (d T) {
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, &d)
	}
	return d
}

// Arguments are a call's as the model wrote them, so nothing about their types is sure.
type Arguments map[string]json.RawMessage

// ParseArguments takes arguments apart. What is no object has none.
func ParseArguments(raw json.RawMessage) Arguments {
	return Details[Arguments](raw)
}

// Text is a string argument; a number or a boolean is taken at its spelling.
func (a Arguments) Text(name string) string {
	if s := a.Optional(name); s != nil {
		return *s
	}
	return ""
}

// Optional is text that can be absent.
func (a Arguments) Optional(name string) *string {
	raw := a[name]
	switch KindOf(raw) {
	case '"':
		s := Details[string](raw)
		return &s
	case '0', 't', 'f':
		s := string(raw)
		return &s
	default:
		return nil
	}
}

// Number is a numeric argument; models also write them as strings.
func (a Arguments) Number(name string) (float64, bool) {
	s := a.Optional(name)
	if s == nil {
		return 0, false
	}
	var f float64
	if err := json.Unmarshal([]byte(*s), &f); err != nil {
		return 0, false
	}
	return f, true
}

// Yes is a flag; the legacy tool declares it as the string "true".
func (a Arguments) Yes(name string) bool { return a.Text(name) == "true" }

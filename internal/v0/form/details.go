package form

import "encoding/json"

// The contents of ToolReturned.Details by kind of tool. Tools omit unknown fields. The
// names are stored, so fields are only added.

// RunDetails describe how a shell command ended.
type RunDetails struct {
	// ExitCode is -1 while the command is running, and absent if unknown.
	ExitCode *int `json:"exit_code,omitempty"`
	// PID is absent if unknown.
	PID               *int   `json:"pid,omitempty"`
	Username          string `json:"username,omitempty"`
	Hostname          string `json:"hostname,omitempty"`
	WorkingDir        string `json:"working_dir,omitempty"`
	PyInterpreterPath string `json:"py_interpreter_path,omitempty"`
	// Prefix and Suffix are our text around the output.
	Prefix string `json:"prefix,omitempty"`
	Suffix string `json:"suffix,omitempty"`
	Hidden bool   `json:"hidden,omitempty"`
	// Folder is WorkingDir as a path below the workspace, "" for the workspace itself. A folder outside has its whole path.
	Folder *string `json:"folder,omitempty"`
}

// PythonDetails describe the images of a notebook cell.
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

// ReadDetails describe a file that was read.
type ReadDetails struct {
	Path       string `json:"path,omitempty"`
	ImplSource string `json:"impl_source,omitempty"`
}

// BrowseDetails describe the current page of a browser.
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

// MCPDetails hold the result of an MCP tool as its server sent it.
type MCPDetails struct {
	Result json.RawMessage `json:"result,omitempty"`
}

// TaskDetails hold the task list after the call.
type TaskDetails struct {
	TaskList json.RawMessage `json:"task_list,omitempty"`
}

// DelegateDetails hold the result of another agent.
type DelegateDetails struct {
	Outputs json.RawMessage `json:"outputs,omitempty"`
}

// Details decodes as much as possible: a field of a wrong type is skipped.
func Details[T any](raw json.RawMessage) (d T) {
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, &d)
	}
	return d
}

// Arguments are the arguments of a call as the model wrote them, of any types.
type Arguments map[string]json.RawMessage

// ParseArguments parses arguments. Anything but an object has none.
func ParseArguments(raw json.RawMessage) Arguments {
	return Details[Arguments](raw)
}

// Text returns a string argument; a number or a boolean is returned as text.
func (a Arguments) Text(name string) string {
	if s := a.Optional(name); s != nil {
		return *s
	}
	return ""
}

// Optional returns a text that may be absent.
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

// Number returns a numeric argument; models also write them as strings.
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

// Yes returns a flag; the legacy tool declares it as the string "true".
func (a Arguments) Yes(name string) bool { return a.Text(name) == "true" }

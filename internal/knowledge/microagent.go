package knowledge

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Kind is when a microagent is shown.
type Kind string

// The kinds. A file with inputs is a task, one with triggers is knowledge, and any other
// always applies.
const (
	Repo      Kind = "repo"
	Knowledge Kind = "knowledge"
	Task      Kind = "task"
)

// Source is where a microagent comes from.
type Source string

// The sources, in the order they are read.
const (
	BuiltIn    Source = "built-in"
	OfServer   Source = "server"
	OfUser     Source = "user"
	Repository Source = "repository"
)

// Microagent is text for the agent.
type Microagent struct {
	// Name is the path of its file in the folder, without the extension.
	Name   string
	Kind   Kind
	Source Source
	// File is the display name of the file.
	File     string
	Content  string
	Triggers []string
	Inputs   []Input
	Servers  []Server
	// command triggers a task.
	command string
}

// microagent creates a microagent from its file.
func microagent(name, file string, from Source, d document) Microagent {
	m := Microagent{Name: name, Kind: Repo, Source: from, File: file, Content: d.body, Inputs: d.inputs}
	for _, t := range d.triggers {
		if t = strings.TrimSpace(t); t != "" { // an empty one would match every message
			m.Triggers = append(m.Triggers, t)
		}
	}
	for _, s := range d.servers {
		s.File, s.Source = file, from
		m.Servers = append(m.Servers, s)
	}
	switch {
	case len(m.Inputs) > 0:
		m.Kind, m.command = Task, "/"+path.Base(name)
		if d.name != "" {
			m.command = "/" + strings.TrimLeft(d.name, "/")
		}
		if !slices.ContainsFunc(m.Triggers, func(t string) bool { return strings.EqualFold(t, m.command) }) {
			m.Triggers = append(m.Triggers, m.command)
		}
	case len(m.Triggers) > 0:
		m.Kind = Knowledge
	}
	return m
}

// trigger returns the trigger that a lower-case message contains.
func (m *Microagent) trigger(message string) (string, bool) {
	for _, t := range m.Triggers {
		lower := strings.ToLower(t)
		if strings.EqualFold(t, m.command) {
			if hasCommand(message, lower) {
				return t, true
			}
			continue
		}
		if strings.Contains(message, lower) {
			return t, true
		}
	}
	return "", false
}

// hasCommand finds /name as a separate word, not in a path.
func hasCommand(message, command string) bool {
	for rest, at := message, 0; ; {
		i := strings.Index(rest, command)
		if i < 0 {
			return false
		}
		before, after := message[:at+i], rest[i+len(command):]
		if (before == "" || strings.ContainsAny(before[len(before)-1:], " \t\n\r\"'(`")) && !inName.MatchString(after) {
			return true
		}
		at += i + len(command)
		rest = after
	}
}

var (
	inName   = regexp.MustCompile(`^[\pL\pN_/-]|^\.[\pL\pN]`)
	variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// text returns the text for the agent. For a task, it explains the placeholders; in other
// texts the same characters can be shell syntax.
func (m *Microagent) text() string {
	if m.Kind != Task {
		return m.Content
	}
	var names []string
	for _, found := range variable.FindAllStringSubmatch(m.Content, -1) {
		names = append(names, found[1])
	}
	about := map[string]string{}
	for _, in := range m.Inputs {
		names = append(names, in.Name)
		about[in.Name] = in.Description
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString(m.Content + "\n\nThis text has blanks for values of the user's. Take them from the message; ask the user for those that it does not give, and do not make them up:")
	for _, n := range slices.Compact(names) {
		fmt.Fprintf(&b, "\n- %s", cleanLine("${"+n+"} "+about[n], maxSentence))
	}
	return b.String()
}

package knowledge

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Kind says when a microagent is shown.
type Kind string

// The kinds. A file does not choose: one with inputs is a task, one with
// triggers is knowledge, any other always holds.
const (
	Repo      Kind = "repo"
	Knowledge Kind = "knowledge"
	Task      Kind = "task"
)

// Source is where something comes from.
type Source string

// The sources, in the order they are read.
const (
	BuiltIn    Source = "built-in"
	OfServer   Source = "server"
	OfUser     Source = "user"
	Repository Source = "repository"
)

// Microagent is a text for the agent.
type Microagent struct {
	// Name is the path of its file in its folder, without the extension.
	Name   string
	Kind   Kind
	Source Source
	// File is what people call the file.
	File     string
	Content  string
	Triggers []string
	Inputs   []Input
	Servers  []Server
	// command brings a task up.
	command string
}

// microagent makes one from its file.
func microagent(name, file string, from Source, d document) Microagent {
	m := Microagent{Name: name, Kind: Repo, Source: from, File: file, Content: d.body, Inputs: d.inputs}
	for _, t := range d.triggers {
		if t = strings.TrimSpace(t); t != "" { // an empty one would be in every message
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

// trigger is what in a message, which is in lower case, brings the microagent up.
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

// hasCommand finds /name as a word of its own: in a path it means something else.
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

// text is what the agent is shown. A task says that its blanks are the user's
// to fill; elsewhere the same sign is that of some shell.
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

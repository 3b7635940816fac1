package knowledge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"deckhand/internal/clip"
)

const (
	// maxShown limits all instructions together, and all microagents that one message
	// triggers.
	maxShown = 128 << 10
	// maxMessage is how much of a message is searched for triggers.
	maxMessage = 256 << 10
	// maxSkills limits the number of listed skills.
	maxSkills = 200
)

// Request asks for the knowledge that belongs to a user message.
type Request struct {
	Scope
	Message string
	// First is set for the first message of a conversation, which adds the instructions
	// and the list of skills.
	First bool
	// Known are the names of the items that the agent already has.
	Known []string
}

// Recalled is the knowledge for a message.
type Recalled struct {
	// Instructions are the texts that always apply, each after a line with its file
	// name. Only set for the first message.
	Instructions string
	// Skills are the available skills. Only set for the first message.
	Skills []Skill
	// Items are the triggered microagents that are not known yet.
	Items []Item
	// MCP are the MCP servers that instructions request.
	MCP []Server
	// Problems are files that could not be used.
	Problems []Problem
}

// Item is a triggered microagent.
type Item struct {
	Name, Trigger, Content string
	Source                 Source
}

// Recall finds the knowledge for a message. It fails only if ctx ends or the repository
// cannot be reached.
func (l *Library) Recall(ctx context.Context, r Request) (Recalled, error) {
	all, close, err := l.look(ctx, r.Scope)
	if err != nil {
		return Recalled{}, err
	}
	defer close()
	var out Recalled
	if r.First {
		out.Instructions = all.instructions()
		if out.Skills = all.skills; len(out.Skills) > maxSkills {
			all.problems = append(all.problems, Problem{out.Skills[maxSkills].Name, fmt.Sprintf("This and other skills are not shown: there are more than %d.", maxSkills)})
			out.Skills = out.Skills[:maxSkills]
		}
	}
	out.Items = all.items(r.Message, r.Known)
	for _, m := range all.agents {
		if m.Kind == Repo {
			out.MCP = append(out.MCP, m.Servers...)
		}
	}
	out.Problems = all.problems
	return out, nil
}

// instructions joins the texts that always apply. Earlier sources come first, so a
// repository cannot displace the server's instructions.
func (f *found) instructions() string {
	var b strings.Builder
	for _, m := range f.agents {
		if m.Kind != Repo || m.Content == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		name := cleanLine(m.File, maxSentence)
		left := maxShown - b.Len()
		if left < 1024 { // too little to be useful
			f.problems = append(f.problems, Problem{name, fmt.Sprintf("It was left out: all instructions together have more than %d kB.", maxShown>>10)})
			fmt.Fprintf(&b, "[%s and what comes after it was left out: there is too much.]", name)
			break
		}
		text := m.text()
		fmt.Fprintf(&b, "[%s]\n%s", from(m.Source, name), clip.Start(text, left))
		if len(text) > left {
			b.WriteString(note(name))
			f.problems = append(f.problems, Problem{name, fmt.Sprintf("It was cut: all instructions together have more than %d kB.", maxShown>>10)})
		}
	}
	return b.String()
}

// from returns the name and source of a file.
func from(s Source, file string) string {
	switch s {
	case Repository:
		return "From " + file + " of the repository"
	case OfUser:
		return "From " + file + " of the user"
	default:
		return "From " + file + " of the server"
	}
}

// items finds the microagents that a message triggers.
func (f *found) items(message string, known []string) []Item {
	var out []Item
	message = strings.ToLower(clip.Start(message, maxMessage))
	left := maxShown
	for i := range f.agents {
		m := &f.agents[i]
		if m.Kind == Repo || slices.Contains(known, m.Name) {
			continue
		}
		trigger, ok := m.trigger(message)
		if !ok {
			continue
		}
		text := m.text()
		if len(text) > left {
			f.problems = append(f.problems, Problem{cleanLine(m.File, maxSentence), "It was left out: the message brings up too much."})
			continue
		}
		left -= len(text)
		out = append(out, Item{Name: m.Name, Trigger: trigger, Content: text, Source: m.Source})
	}
	return out
}

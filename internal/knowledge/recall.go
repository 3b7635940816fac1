package knowledge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"deckhand/internal/clip"
)

const (
	// maxShown bounds all instructions together, and all that one message brings up.
	maxShown = 128 << 10
	// maxMessage is how much of a message is looked through for triggers.
	maxMessage = 256 << 10
	// maxSkills bounds how many skills are named.
	maxSkills = 200
)

// Request asks what the agent should be told with a message of the user's.
type Request struct {
	Scope
	Message string
	// First says that it is the conversation's first message, with which the agent
	// gets the instructions and the list of skills.
	First bool
	// Known are the names of the items that the agent was shown before.
	Known []string
}

// Recalled is what it should be told.
type Recalled struct {
	// Instructions are the texts that always hold, each after a line that names
	// its file. Empty but for the first message.
	Instructions string
	// Skills are those it can ask for. None but for the first message.
	Skills []Skill
	// Items are what the message brought up and is not known yet.
	Items []Item
	// MCP are the tool servers that instructions ask for.
	MCP []Server
	// Problems are files that could not be used.
	Problems []Problem
}

// Item is a microagent that a message brought up.
type Item struct {
	Name, Trigger, Content string
	Source                 Source
}

// Recall finds what belongs to a message. It fails only if ctx ends or the
// repository cannot be reached at all.
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

// instructions joins what always holds. Those who come first are shown first,
// so that a repository cannot push the server's out.
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
		if left < 1024 { // a few words would not help
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

// from names a file and whose it is.
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

// items finds what a message brings up.
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

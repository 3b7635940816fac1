package chat

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"deckhand/api"
	"deckhand/internal/cli"
	"deckhand/internal/cli/prompt"
	"deckhand/internal/terminal"
)

// choice is an item of a menu.
type choice struct{ word, about string }

// menu is a list to choose from: completions above the prompt, or sessions in its place.
type menu struct {
	choices []choice
	at      int
	// whole says that the menu replaces the prompt, and chosen is called with the word. Otherwise the word
	// replaces what was typed from the column where it began.
	whole  bool
	title  string
	chosen func(*drawn, string) tea.Cmd
	from   int
}

func (m *menu) open() bool { return len(m.choices) > 0 }

// move moves the selection up or down.
func (m *menu) move(by int) {
	if n := len(m.choices); n > 0 {
		m.at = (m.at + by + n) % n
	}
}

// view returns the visible part of the menu, around the selection.
func (m *menu) view(d *drawn) []string {
	if !m.open() {
		return nil
	}
	room := max(1, min(prompt.MaxFound, d.height-5))
	if m.whole {
		room = max(1, min(15, d.height-4))
	}
	from := max(0, min(m.at-room/2, len(m.choices)-room))
	var out []string
	if m.whole {
		out = append(out, d.paint(bold, d.fit(m.title)))
	}
	for i, c := range m.choices[from:min(len(m.choices), from+room)] {
		mark, look := "  ", ""
		if from+i == m.at {
			mark, look = "❯ ", cyan
		}
		line := mark + terminal.Inline(c.word)
		if m.whole {
			line = mark + terminal.Inline(c.about)
		} else if c.about != "" {
			line = fmt.Sprintf("%s%-14s %s", mark, terminal.Inline(c.word), terminal.Inline(c.about))
		}
		if look == "" {
			out = append(out, d.fit(line))
		} else {
			out = append(out, d.paint(look, d.fit(line)))
		}
	}
	return out
}

// sessionMenu offers sessions.
func sessionMenu(all []api.Conversation, now time.Time) menu {
	m := menu{whole: true, title: "Choose a session (↑ ↓ Enter, Esc for a new one)", chosen: func(d *drawn, id string) tea.Cmd {
		for _, c := range all {
			if c.ConversationID == id {
				d.show(c)
			}
		}
		return nil
	}}
	for _, c := range all {
		word, _ := cli.StateOf(c)
		m.choices = append(m.choices, choice{c.ConversationID, fmt.Sprintf("%-4s %-14s %s", cli.Age(now.Sub(c.LastUpdatedAt)), word, oneLine(c))})
	}
	return m
}

// ownMenu asks what /undo or /redo does with files that the user changed too.
func ownMenu(command string) menu {
	return menu{whole: true, title: "Keep your versions of these files? (↑ ↓ Enter, Esc to cancel)",
		choices: []choice{{api.OwnKeep, "Keep my versions, restore the other files"}, {api.OwnOverwrite, "Restore these files too"}},
		chosen:  func(d *drawn, own string) tea.Cmd { return d.run(command, own) }}
}

// completions returns the completions of the word at the end of a text, and where the word begins.
func (d *drawn) completions(text string, files []string) menu {
	if rest, ok := strings.CutPrefix(text, "/"); ok && !strings.ContainsAny(rest, " \n") {
		m := menu{}
		for _, c := range prompt.Commands {
			if strings.HasPrefix(c.Name, rest) {
				m.choices = append(m.choices, choice{"/" + c.Name, c.About})
			}
		}
		for _, c := range d.known {
			if _, taken := prompt.Find(c.Name); !taken && strings.HasPrefix(c.Name, rest) {
				m.choices = append(m.choices, choice{"/" + c.Name, strings.TrimSpace(c.ArgumentHint + " " + c.Description)})
			}
		}
		return m
	}
	at := prompt.MentionAt(text)
	if at < 0 {
		return menu{}
	}
	m := menu{from: at}
	for _, name := range prompt.Rank(files, prompt.Mentioned(text, at)) {
		m.choices = append(m.choices, choice{word: prompt.Mention(name)})
	}
	return m
}

// Package prompt is the text input of a session: the input field, its history, its built-in slash commands, and the
// completion of file names.
package prompt

import (
	"strings"

	"charm.land/bubbles/v2/textarea"
	"charm.land/lipgloss/v2"
)

// New returns an empty prompt.
func New(colour bool) textarea.Model {
	in := textarea.New()
	in.ShowLineNumbers, in.EndOfBufferCharacter = false, ' '
	in.DynamicHeight, in.MinHeight, in.MaxHeight, in.MaxContentHeight = true, 1, 8, 1000
	in.SetPromptFunc(2, func(i textarea.PromptInfo) string {
		if i.LineNumber == 0 {
			return "> "
		}
		return "  "
	})
	in.Placeholder = "Describe a task, or type / for commands"
	in.SetVirtualCursor(false)
	plain := lipgloss.NewStyle()
	look := textarea.StyleState{Base: plain, Text: plain, CursorLine: plain, EndOfBuffer: plain, Prompt: plain, Placeholder: plain}
	if colour {
		look.Prompt, look.Placeholder = plain.Bold(true), plain.Faint(true)
	}
	in.SetStyles(textarea.Styles{Focused: look, Blurred: look})
	in.KeyMap.InsertNewline.SetKeys("alt+enter", "shift+enter", "ctrl+j")
	in.KeyMap.Paste.SetEnabled(false) // the terminal pastes; this would start a program
	in.Focus()
	return in
}

// tab is shown in the input field for a tab character, which the field would replace with spaces.
var tab = strings.Repeat("\u2007", 4)

// Shown returns a text for the input field.
func Shown(text string) string { return strings.ReplaceAll(text, "\t", tab) }

// Typed returns the text that an input field stands for. A tab of which the user deleted a part is spaces.
func Typed(shown string) string {
	return strings.ReplaceAll(strings.ReplaceAll(shown, tab, "\t"), "\u2007", " ")
}

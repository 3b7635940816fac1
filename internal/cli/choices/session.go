package choices

import "errors"

// Session chooses the session of a terminal.
type Session struct {
	ID       string `arg:"" optional:"" help:"Session to open, with or without --resume; a unique prefix of its ID is enough."`
	Continue bool   `name:"continue" short:"c" xor:"which" help:"Continue the last session of this folder."`
	Resume   bool   `name:"resume" short:"r" xor:"which" help:"Choose a session from a list, or open the one with the given ID."`
}

// Opens reports whether the flags name a session, or ask for the list of sessions.
func (s Session) Opens() bool { return s.Resume || s.ID != "" }

// AfterApply is called by the parser. It refuses an argument of --continue, which looks like a message.
func (s Session) AfterApply() error {
	if s.Continue && s.ID != "" {
		return errors.New(`--continue takes no argument; use --resume ID to open another session, or deckhand run --continue "MESSAGE" to send a message`)
	}
	return nil
}

// Help implements kong.HelpProvider.
func (Session) Help() string {
	return `Type a task and follow the agent's work. Type /help in the session for commands and keys. Risky calls need your approval; --confirm asks before all calls, --yes before none.

Sessions are kept: deckhand -c continues the last one, and deckhand list lists all. With --server, the session runs on another server.

Without --model or stored settings, the first key that is set selects the model: ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY, MISTRAL_API_KEY, GROQ_API_KEY, DEEPSEEK_API_KEY or XAI_API_KEY.

Examples:
  deckhand
  deckhand -c
  deckhand --resume 3f9c2a11
  deckhand --model scripted/demo`
}

package chat

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"deckhand/api"
	"deckhand/internal/cli"
	refusals "deckhand/internal/conversation"
)

// demo is the model that needs neither a key nor a network.
const demo = "scripted/demo"

// setupHelp explains how to set up a model.
const setupHelp = `Deckhand needs a model. Choose one of these:

  1. Set a provider's API key and start deckhand again. It selects a model for you.

       export ANTHROPIC_API_KEY=...     also OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY,
                                        MISTRAL_API_KEY, GROQ_API_KEY, DEEPSEEK_API_KEY, XAI_API_KEY

  2. Use your own server with an OpenAI-compatible API.

       deckhand --model openai/NAME --base-url http://127.0.0.1:11434/v1

  3. Use a Deckhand server.

       deckhand --server https://deckhand.example.org

  4. Try the demo, which needs no key and no network.

       deckhand --model scripted/demo
`

// WithModel runs a session. If there is no key for a model, it uses the model that was chosen last in
// this folder, whose name is kept in the file. Without one it prints how to get a key, and offers the
// demo on a terminal.
func WithModel(o *cli.Output, model *string, file string, run func() error) error {
	if *model != "" {
		_ = os.WriteFile(file, []byte(*model), 0o600) // only a default is lost
	}
	err := run()
	if !keyless(err) || *model != "" {
		return err
	}
	if last, _ := os.ReadFile(file); len(last) > 0 {
		*model = string(last)
		if err = run(); !keyless(err) {
			return err
		}
		*model = ""
	}
	fmt.Fprint(o.Stderr, setupHelp)
	if cli.Columns(os.Stdin) == 0 {
		return cli.Exit(cli.ExitUsage)
	}
	fmt.Fprint(o.Stderr, "\nStart the demo now? [y/N] ")
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return cli.Exit(cli.ExitUsage)
	}
	*model = demo
	_ = os.WriteFile(file, []byte(*model), 0o600)
	return run()
}

// keyless reports whether a model has no key.
func keyless(err error) bool {
	var refused *refusals.Refusal
	return errors.As(err, &refused) && refused.Code == api.CodeLLMAuthentication
}

// Package setup chooses the model of a terminal session: from the flags, the last one chosen in the folder, or the demo model.
package setup

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"deckhand/api"
	"deckhand/internal/cli"
	"deckhand/internal/config"
	refusals "deckhand/internal/conversation"
)

// demo is the model that needs neither a key nor a network.
const demo = "scripted/demo"

// setupHelp explains how to set up a model.
const setupHelp = `Deckhand needs a model. Choose one of these:

  1. Set a provider's API key and start deckhand again. It selects a model.

       export ANTHROPIC_API_KEY=...

     The others are OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY,
     MISTRAL_API_KEY, GROQ_API_KEY, DEEPSEEK_API_KEY and XAI_API_KEY.

  2. Use Ollama on this machine, or another server with an OpenAI-compatible API.

       deckhand --model ollama/NAME
       deckhand --model openai/NAME --base-url http://127.0.0.1:8000/v1

  3. Use a Deckhand server.

       deckhand --server https://deckhand.example.org

  4. Try the demo, which needs no key and no network.

       deckhand --model scripted/demo
`

// Choice chooses the model of a folder. Model and BaseURL point to the values of the flags, "" if they are not set.
type Choice struct {
	Model, BaseURL *string
	// File stores the last chosen model and its base URL.
	File string
}

// Remember stores the model of the flags as the default for the next session. Errors are ignored.
func (c Choice) Remember() {
	if *c.Model != "" {
		_ = os.WriteFile(c.File, []byte(*c.Model+"\n"+*c.BaseURL), 0o600)
	}
}

// Recall sets the last chosen model, unless a flag sets a model or another base URL. It reports whether it set the model.
func (c Choice) Recall() bool {
	model, base := c.Last()
	if model == "" || *c.Model != "" || *c.BaseURL != "" && *c.BaseURL != base {
		return false
	}
	*c.Model, *c.BaseURL = model, base
	return true
}

// Last returns the last chosen model and its base URL, "" if there is none.
func (c Choice) Last() (model, baseURL string) {
	last, _ := os.ReadFile(c.File)
	model, baseURL, _ = strings.Cut(strings.TrimSpace(string(last)), "\n")
	return model, baseURL
}

// Run runs a session. A continued session uses the last model chosen in this folder. A new session uses it only if no other
// model has a key. If there is no usable model, Run prints how to get a key, and offers the demo model on a terminal.
func (c Choice) Run(o *cli.Output, continued bool, run func() error) error {
	c.Remember()
	chosen := *c.Model != ""
	recalled := continued && c.Recall()
	err := run()
	if !keyless(err) || chosen {
		return err
	}
	if recalled { // the recalled model has no key
		*c.Model, *c.BaseURL = "", ""
	}
	if recalled || c.Recall() {
		if err = run(); !keyless(err) {
			return err
		}
		*c.Model, *c.BaseURL = "", ""
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
	*c.Model = demo
	c.Remember()
	return run()
}

// keyless reports whether a model has no key.
func keyless(err error) bool {
	var refused *refusals.Refusal
	return errors.As(err, &refused) && refused.Code == api.CodeLLMAuthentication
}

// Invalid returns a usage error that names the flag of an invalid setting. It returns other errors unchanged.
func Invalid(err error) error {
	var invalid *api.ValidationError
	if errors.As(err, &invalid) && len(invalid.Detail) > 0 {
		text := strings.Replace(invalid.Detail[0].Msg, ", or null for no limit", "", 1) // no flag can be null
		return cli.Usagef("%s: %s", config.SettingFlag(invalid.Detail[0].Loc), text)
	}
	return err
}

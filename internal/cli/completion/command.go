package completion

import (
	"io"

	"deckhand/internal/cli"
)

// Command is deckhand completion.
type Command struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
}

// Help implements kong.HelpProvider.
func (Command) Help() string {
	return `Completes commands, flags, flag values and conversation IDs. Load the script in your shell:

Examples:
  bash:  echo 'source <(deckhand completion bash)' >> ~/.bashrc
  zsh:   echo 'source <(deckhand completion zsh)' >> ~/.zshrc
  fish:  deckhand completion fish > ~/.config/fish/completions/deckhand.fish`
}

// Run prints a script.
func (c Command) Run(o *cli.Output) error {
	_, err := io.WriteString(o.Stdout, Script(c.Shell))
	return err
}

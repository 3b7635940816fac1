package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/cli"
)

// Export is deckhand export.
type Export struct {
	ID string `arg:"" name:"conversation" optional:"" help:"Conversation ID; a unique prefix is enough. Default: the newest conversation."`
	cli.RemoteFlags
	Output string `name:"output" short:"o" placeholder:"FILE" help:"File to write; - is standard output. Default: ID.deckhand.tar.gz in this folder."`
}

// Help implements kong.HelpProvider.
func (Export) Help() string {
	return `Writes the events, the workspace, the title and the settings to one file, which deckhand import FILE imports on any server. Secrets in events are masked; check the files of the workspace for secrets before you share the file.

Example:
  deckhand export 3f9c2a11 -o task.deckhand.tar.gz

Exit codes: 0 success, 1 error, 2 usage error, 130 Ctrl-C.`
}

// Run writes the file.
func (c *Export) Run(ctx context.Context, o *cli.Output) error {
	server, err := c.Client()
	if err != nil {
		return err
	}
	found, err := cli.Find(ctx, server, c.ID)
	if err != nil {
		return err
	}
	if c.Output == "-" {
		return ended(ctx, server.Export(ctx, found.ConversationID, o.Stdout))
	}
	name := c.Output
	if name == "" {
		name = filepath.Base(found.ConversationID) + ".deckhand.tar.gz" // in this folder, whatever the server says
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s already exists; remove it, or choose another name with -o", name)
	}
	if err != nil {
		return err
	}
	err = server.Export(ctx, found.ConversationID, f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(name)
		return ended(ctx, err)
	}
	fmt.Fprintf(o.Stdout, "exported %s to %s\n", found.ConversationID, name)
	return nil
}

func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return cli.Exit(cli.ExitInterrupted)
	}
	return cli.Plainly(err)
}

// importFile imports a conversation from a file through the running server.
func (c *Command) importFile(ctx context.Context, o *cli.Output) error {
	if c.LegacyUser != "" || c.Timezone != "" || c.Overwrite || c.DryRun {
		return cli.Usagef("--legacy-user, --timezone, --overwrite and --dry-run need --from")
	}
	if info, err := os.Stat(c.File); err == nil && info.IsDir() {
		return cli.Usagef("%s is a folder; name a file that deckhand export has written, or use --from %s if it is the data folder of a legacy server", c.File, c.File)
	}
	remote := cli.RemoteFlags{DataDir: c.DataDir, ServerFlags: c.ServerFlags}
	server, err := remote.Client()
	if err != nil {
		return err
	}
	made, err := send(ctx, server, c.File)
	if err != nil {
		return ended(ctx, err)
	}
	if c.JSON {
		return printJSON(o.Stdout, made)
	}
	fmt.Fprintf(o.Stdout, "imported %s: %d events, %d files\n", made.ConversationID, made.Events, made.Files)
	if made.SkippedEvents > 0 {
		fmt.Fprintf(o.Stderr, "%d events could not be read and were skipped\n", made.SkippedEvents)
	}
	for _, name := range made.SkippedLinks {
		fmt.Fprintf(o.Stderr, "the symbolic link %q could not be created\n", name)
	}
	if len(made.AppliedSettings) > 0 {
		fmt.Fprintf(o.Stdout, "applied settings: %s\n", strings.Join(made.AppliedSettings, ", "))
	}
	for _, s := range made.SkippedSettings {
		fmt.Fprintf(o.Stderr, "setting %s was not applied: %s\n", s.Setting, s.Reason)
	}
	return nil
}

func send(ctx context.Context, server *client.Client, name string) (made api.ImportedConversation, err error) {
	var from io.Reader = os.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return made, cli.Usagef("%w", err)
		}
		defer f.Close()
		from = f
	}
	return server.ImportConversation(ctx, from)
}

package cli

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"deckhand/api"
)

// New is deckhand new.
type New struct {
	Task string `arg:"" help:"Task for the agent; - reads it from standard input."`
	RemoteFlags
	Repo         string   `name:"repo" placeholder:"REPO" help:"Repository to work on: OWNER/NAME or a URL."`
	Provider     string   `name:"provider" enum:"${git_providers}" default:"" placeholder:"NAME" help:"Git provider: ${git_provider_list}. Default: detected by the server."`
	Branch       string   `name:"branch" placeholder:"NAME" help:"Branch of --repo to check out."`
	Instructions string   `name:"instructions" placeholder:"TEXT" help:"Additional instructions for the agent."`
	Image        []string `name:"image" type:"existingfile" placeholder:"FILE" help:"Image to send with the task. May be repeated."`
	Attach       bool     `name:"attach" short:"a" help:"Attach to the conversation, like deckhand attach."`
}

// Help implements kong.HelpProvider.
func (New) Help() string {
	return serverHelp + `

Examples:
  deckhand new "fix the failing test" --repo octo/hello --attach
  id=$(deckhand new "say hello") && deckhand attach "$id" | tee hello.log`
}

// Run creates the conversation.
func (c *New) Run(ctx context.Context, o *Output) error {
	in := api.CreateConversation{}
	task, err := ReadTask(c.Task, "deckhand new")
	if err != nil {
		return err
	}
	in.InitialUserMsg = api.Some(task)
	if c.Branch != "" && c.Repo == "" {
		return Usagef("--branch needs --repo")
	}
	for to, value := range map[*api.Opt[string]]string{&in.Repository: c.Repo, &in.GitProvider: c.Provider, &in.SelectedBranch: c.Branch, &in.ConversationInstructions: c.Instructions} {
		if value != "" {
			*to = api.Some(value)
		}
	}
	if in.ImageURLs, err = Images(c.Image); err != nil {
		return err
	}
	r, err := c.Connect()
	if err != nil {
		return err
	}
	made, err := r.Create(ctx, in)
	if err != nil {
		return Plainly(err)
	}
	if !c.Attach {
		_, err = fmt.Fprintln(o.Stdout, made.ConversationID)
		return err
	}
	found, err := r.Conversation(ctx, made.ConversationID)
	if err != nil {
		return Plainly(err)
	}
	return r.attach(ctx, o, found, nil)
}

// MaxTask is the maximum size of a task, as for all messages.
const MaxTask = 1 << 20

// ReadTask returns the task that was given, or standard input for -, and for no task if standard input is not a terminal.
func ReadTask(task, command string) (string, error) {
	if task == "-" || task == "" && Columns(os.Stdin) == 0 {
		text, err := ReadInput()
		if err != nil {
			return "", err
		}
		task = text
	}
	if strings.TrimSpace(task) == "" {
		return "", Usagef("task missing; for example: %s %q", command, "fix the failing test")
	}
	return task, nil
}

// ReadInput reads all of standard input.
func ReadInput() (string, error) {
	text, err := io.ReadAll(io.LimitReader(os.Stdin, MaxTask+1))
	if err == nil && len(text) > MaxTask {
		err = ErrTooLong
	}
	return string(text), err
}

// ErrTooLong says that a task is longer than a message may be.
var ErrTooLong = Usagef("the task and standard input are longer than %d MiB; put the input into a file in the folder instead", MaxTask>>20)

// Images are files with images as data URLs, for a request.
func Images(files []string) (out api.Opt[[]string], err error) {
	var urls []string
	for _, name := range files {
		url, err := imageURL(name)
		if err != nil {
			return out, err
		}
		urls = append(urls, url)
	}
	if len(urls) > 0 {
		out = api.Some(urls)
	}
	return out, nil
}

// imageURL is a file with an image as a data URL.
func imageURL(name string) (string, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return "", Usagef("--image: %w", err)
	}
	kind := http.DetectContentType(b)
	switch {
	case !strings.HasPrefix(kind, "image/"):
		return "", Usagef("--image %s is not an image", name)
	case len(b) > api.MaxImage:
		return "", Usagef("--image %s is larger than %d MiB", name, api.MaxImage>>20)
	}
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(b), nil
}

// Package join runs a task on the server that another terminal runs for the same folder.
package join

import (
	"bufio"
	"context"
	"errors"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/cli"
	"deckhand/internal/cli/folder"
	"deckhand/internal/cli/track"
	"deckhand/internal/config"
	"deckhand/internal/session"
	"deckhand/internal/terminal"
)

// Task is a task for the server of another terminal.
type Task struct {
	Client *client.Client
	// Request has the task as its first message.
	Request api.CreateConversation
	Flags   config.SettingsFlags
	// BaseURL is the base URL of the model that was last chosen in the folder.
	BaseURL string
	Options cli.TalkOptions
}

// patience is the timeout for requests to the server.
const patience = 15 * time.Second

// run is a task in progress.
type run struct {
	Task
	track.Agent
	*terminal.Display
	o  *cli.Output
	id string
	// stops is true if the agent is stopped at the end: no other terminal uses the conversation.
	stops bool

	items   chan client.Item
	failed  error // why items ended
	signals chan os.Signal
	late    <-chan time.Time
	typed   chan string // nil without a terminal

	began        time.Time
	newest, last int64
	asked        string // the last call that was answered
	ended        cli.Ended
	said         string
	rejections   int // of the final answer
}

// Run runs the task until the agent is done, and returns the exit code as an error.
func (t Task) Run(ctx context.Context, o *cli.Output) error {
	if t.Options.Schema != nil && !t.Options.JSON { // standard output is for the answer
		o = &cli.Output{Stdout: o.Stderr, Stderr: o.Stderr, Answer: o.Stdout}
	}
	r := &run{Task: t, o: o, signals: make(chan os.Signal, 4), items: make(chan client.Item), began: time.Now()}
	look := terminal.Options{Out: o.Stdout}
	if screen, ok := o.Stdout.(*os.File); ok && cli.Columns(screen) > 0 {
		look.Color, look.Width = cli.WantsColour(), func() int { return cli.Columns(screen) }
		if cli.Columns(os.Stdin) > 0 && !t.Options.JSON {
			r.typed = make(chan string)
		}
	}
	r.Display = terminal.New(look)
	if t.Options.Timeout > 0 {
		r.late = time.After(t.Options.Timeout)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // signals are handled below
	defer cancel()
	signal.Notify(r.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer signal.Stop(r.signals)
	if r.typed != nil {
		go r.listen(ctx)
	}
	if err := r.begin(ctx); err != nil {
		return cli.Plainly(err)
	}
	go r.follow(ctx)
	code, err := r.talk(ctx)
	if err == nil {
		err = r.finish(ctx, code)
	}
	if errors.Is(err, syscall.EPIPE) { // the reader of the output is gone
		code, err = cli.ExitInterrupted, nil
	}
	return errors.Join(cli.Plainly(err), cli.Exit(code))
}

// listen reads lines from the terminal.
func (r *run) listen(ctx context.Context) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		select {
		case r.typed <- lines.Text():
		case <-ctx.Done():
			return
		}
	}
	close(r.typed)
}

// begin creates the conversation, or sends the next message to the last one.
func (r *run) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	overrides, err := r.overrides(ctx)
	if err != nil {
		return err
	}
	r.State = session.AgentLoading
	task, images := r.Request.InitialUserMsg.Value, r.Request.ImageURLs
	if !r.Task.Options.Continue {
		r.stops = true
		r.Request.InitialUserMsg, r.Request.ImageURLs = api.Opt[string]{}, api.Opt[[]string]{}
		made, err := r.Client.Create(ctx, r.Request)
		if err != nil {
			return err
		}
		r.id = made.ConversationID
	} else {
		page, err := r.Client.Conversations(ctx, url.Values{"limit": {"100"}})
		if err != nil {
			return err
		}
		found, ok := folder.Newest(page.Results)
		switch busy := (&track.Agent{State: session.AgentState(found.AgentState)}); {
		case !ok:
			return cli.Usagef("there is no session in this folder yet; start one with deckhand, or with deckhand run --keep")
		case found.Status != "STOPPED" && (busy.Working() || busy.State == session.AgentAwaitingYes):
			return errors.New("the last session of this folder is busy in another terminal; wait until it is done, or use --keep instead of --continue for a new one")
		}
		r.id, r.stops = found.ConversationID, found.Status == "STOPPED"
		if more := r.Request.ConversationInstructions.Value; more != "" {
			task += "\n\n" + more
		}
	}
	if overrides != (api.SetOverrides{}) {
		if _, err := r.Client.SetOverrides(ctx, r.id, overrides); err != nil {
			return err
		}
	}
	if r.last, err = cli.NewestEvent(ctx, r.Client, r.id); err != nil {
		return err
	}
	r.Unheard = true
	return r.Client.Post(ctx, r.id, api.PostMessage{Message: task, ImageURLs: images}, "")
}

// overrides returns the flags that apply to one conversation. The other flags belong to the server, which has those of the
// terminal that started it.
func (r *run) overrides(ctx context.Context) (out api.SetOverrides, err error) {
	stored, err := r.Client.Settings(ctx)
	if err != nil {
		return out, err
	}
	f := r.Flags
	if flag := f.OfServer(r.BaseURL, stored.Asks() == "always"); flag != "" {
		return out, cli.Usagef("%s cannot be used while another terminal has a session in this folder", flag)
	}
	model := f.Model
	if model == stored.Model() {
		model = ""
	}
	return api.Override(model, f.Budget), nil
}

// follow reads the events after the message.
func (r *run) follow(ctx context.Context) {
	defer close(r.items)
	for it, err := range r.Client.Follow(ctx, r.id, r.last) {
		if err != nil {
			r.failed = err
			return
		}
		select {
		case r.items <- it:
		case <-ctx.Done():
			return
		}
	}
}

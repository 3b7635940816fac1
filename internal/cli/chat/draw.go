package chat

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/cli"
	"deckhand/internal/cli/choices"
	"deckhand/internal/cli/prompt"
	"deckhand/internal/terminal"
)

// entry is the purpose of the text that is being typed.
type entry int

const (
	aMessage entry = iota
	anAnswer       // to whether a call may be made
	aReason        // why it may not
	newCall        // the edited arguments of a call
	aYes           // whether the edited call may be made, if it has high risk
	aPlan          // the edited plan
	aQueued        // an edited message of the queue
)

// drawn is a session on a full terminal. The conversation is printed above and scrolls
// away like the output of any program; below it are the line in progress, the prompt and the
// status line.
type drawn struct {
	*conversation
	ctx    context.Context
	send   func(tea.Msg)
	screen *prompt.Screen

	width, height int
	colour        bool
	out           strings.Builder // what Display writes
	// waiting are lines to print; printing is true while some are being printed.
	waiting  []string
	printing bool
	ended    bool
	// heights are the recent heights of the lower part of the screen.
	heights [16]int
	views   int
	shrinks shrinking

	input   textarea.Model
	entry   entry
	draft   string // text that was typed before a question appeared
	offered string // the call before it was edited
	args    map[string]any
	editing int64 // the queued message that is edited
	history *prompt.History
	menu    menu
	known   []api.Command // commands that send a prompt, for completion

	doing   string // current activity
	spin    int
	pressed int                // consecutive presses of Ctrl-C
	busy    int                // requests in progress
	stop    context.CancelFunc // of the stream
	err     error
}

// Messages to the session.
type (
	itemsMsg struct {
		id    string
		items []client.Item
	}
	goneMsg struct {
		id  string
		err error
	}
	tickMsg    struct{}
	printedMsg struct{}
	// doneMsg is the result of a request; then is called with the session, before anything is shown.
	doneMsg struct {
		err  error
		then func(*drawn)
	}
)

// draw runs the session on a full terminal.
func (s *conversation) draw(ctx context.Context, keys, screen *os.File) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a signal ends the program below
	defer cancel()
	d := &drawn{conversation: s, ctx: ctx, screen: &prompt.Screen{File: screen}, width: cli.Columns(screen), height: 24, colour: cli.WantsColour(), history: prompt.OpenHistory(s.DataDir)}
	s.Display = terminal.New(terminal.Options{Out: &d.out, Color: d.colour, Width: func() int { return d.width }, Messages: true, OnStatus: func(text string) { d.doing = text }})
	d.input = prompt.New(d.colour)
	d.welcome()
	p := tea.NewProgram(d, tea.WithInput(keys), tea.WithOutput(d.screen), tea.WithContext(ctx))
	d.send = p.Send
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	go func() {
		select {
		case <-hangup:
			p.Quit()
		case <-ctx.Done():
		}
	}()
	_, err := p.Run()
	if d.stop != nil {
		d.stop()
	}
	if errors.Is(err, tea.ErrInterrupted) {
		err = nil
	}
	return errors.Join(err, d.err)
}

// Init implements tea.Model.
func (d *drawn) Init() tea.Cmd {
	var cmds []tea.Cmd
	if d.offer != nil {
		d.menu = sessionMenu(d.offer, time.Now())
	} else if d.id != "" {
		d.follow()
	} else {
		cmds = append(cmds, d.lookAround())
	}
	return tea.Batch(append(cmds, tick(), d.flush())...)
}

// lookAround reports another session that is still working, such as after a crash.
func (d *drawn) lookAround() tea.Cmd {
	return d.request(func(ctx context.Context, _ string) (func(*drawn), error) {
		all, err := d.sessions(ctx)
		if err != nil {
			return nil, err
		}
		for _, c := range all {
			if c.Status == "RUNNING" && (c.AgentState == "running" || c.AgentState == "awaiting_user_confirmation") && d.Elsewhere == "" {
				does := "is still working"
				if c.AgentState == "awaiting_user_confirmation" {
					does = "is waiting for your approval"
				}
				return func(d *drawn) { d.Notice("the session “" + oneLine(c) + "” " + does + "; /resume opens it") }, nil
			}
		}
		return nil, nil
	})
}

func tick() tea.Cmd {
	return tea.Tick(150*time.Millisecond, func(time.Time) tea.Msg { return tickMsg{} })
}

// refreshTicks is after how many ticks the status line is read again.
const refreshTicks = 200

// refresh reads the status line again.
func (d *drawn) refresh() tea.Cmd {
	return d.request(func(ctx context.Context, id string) (func(*drawn), error) {
		got, err := choices.Read(ctx, d.Client, id, d.Settings, d.Shared)
		return func(d *drawn) {
			if d.id == id {
				d.hold(got, err)
			}
		}, nil
	})
}

// request runs a slow operation in the background.
func (d *drawn) request(do func(ctx context.Context, id string) (func(*drawn), error)) tea.Cmd {
	d.busy++
	id := d.id
	return func() tea.Msg {
		then, err := do(d.ctx, id)
		return doneMsg{err, then}
	}
}

// follow reads the events of the open conversation.
func (d *drawn) follow() {
	if d.stop != nil {
		d.stop()
	}
	ctx, stop := context.WithCancel(d.ctx)
	d.stop = stop
	id, after, c, send := d.id, d.last, d.Client, d.send
	items := make(chan client.Item, 256)
	go func() {
		defer close(items)
		for it, err := range c.Follow(ctx, id, after) {
			if err != nil {
				if ctx.Err() == nil {
					send(goneMsg{id, err})
				}
				return
			}
			select {
			case items <- it:
			case <-ctx.Done():
				return
			}
		}
	}()
	go func() { // batch events that arrive together
		for it := range items {
			batch := []client.Item{it}
		more:
			for len(batch) < 256 {
				select {
				case next, ok := <-items:
					if !ok {
						break more
					}
					batch = append(batch, next)
				default:
					break more
				}
			}
			send(itemsMsg{id, batch})
		}
	}()
}

// Update implements tea.Model.
func (d *drawn) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		d.width, d.height = msg.Width, msg.Height
		d.input.SetWidth(msg.Width)
		d.input.MaxHeight = max(1, min(8, msg.Height-6))
	case itemsMsg:
		if msg.id == d.id {
			working := d.Working()
			for _, it := range msg.items {
				d.doing = "" // the activity has ended
				d.take(it)
			}
			cmd = d.consider()
			if working && !d.Working() {
				cmd = tea.Batch(cmd, d.refresh())
			}
		}
	case goneMsg:
		if msg.id == d.id {
			d.Problem(cli.Plainly(msg.err).Error())
		}
	case doneMsg:
		d.busy--
		if msg.then != nil {
			msg.then(d)
		}
		if msg.err != nil {
			d.Problem(msg.err.Error())
		}
		cmd = d.consider()
	case printedMsg:
		d.printing = false
	case tickMsg:
		cmd = tick()
		if d.spin++; d.spin%refreshTicks == 0 { // another terminal may have become the server
			cmd = tea.Batch(cmd, d.refresh())
		}
	case tea.PasteMsg:
		d.pressed = 0
		d.input, cmd = d.input.Update(tea.PasteMsg{Content: prompt.Shown(terminal.Clean(msg.Content))})
		cmd = tea.Batch(cmd, d.complete())
	case tea.KeyPressMsg:
		cmd = d.key(msg)
	default:
		d.input, cmd = d.input.Update(msg)
	}
	return d, tea.Batch(cmd, d.flush())
}

// consider asks the user about a pending call, or withdraws the question.
func (d *drawn) consider() tea.Cmd {
	if d.question.CallID == "" && d.entry != aMessage && d.entry != aPlan && d.entry != aQueued {
		d.back()
	}
	if !d.mustAsk() || d.busy > 0 {
		return nil
	}
	return d.request(func(ctx context.Context, id string) (func(*drawn), error) {
		found, err := d.pending(ctx, id)
		if err != nil || found.CallID == "" {
			return nil, err
		}
		return func(d *drawn) { d.put(found) }, nil
	})
}

// put asks about a call. Text that was being typed is restored afterwards, so that it is never taken as the answer.
func (d *drawn) put(a api.Approval) {
	d.ask(a)
	if d.entry != aPlan && d.entry != aQueued {
		d.draft = d.typed()
	}
	d.entry, d.menu = anAnswer, menu{}
	d.set("")
}

// set replaces the text in the prompt.
func (d *drawn) set(text string) {
	d.input.SetValue(prompt.Shown(text))
	d.input.MoveToEnd()
}

// typed returns the text in the prompt.
func (d *drawn) typed() string { return prompt.Typed(d.input.Value()) }

// flush prints the whole lines that Display wrote. The last column stays free: the renderer erases the rest
// of each line, and in the last column that would be its last character. Prints must not overtake each other, so one follows the
// other, and none is longer than the screen has room for.
func (d *drawn) flush() tea.Cmd {
	text := d.out.String()
	at := strings.LastIndexByte(text, '\n') + 1
	if at > 0 {
		d.out.Reset()
		d.out.WriteString(text[at:])
		for line := range strings.SplitSeq(strings.TrimSuffix(text[:at], "\n"), "\n") {
			d.waiting = append(d.waiting, strings.Split(ansi.Hardwrap(line, max(d.width-1, 1), true), "\n")...)
		}
	}
	if d.printing || len(d.waiting) == 0 || !d.screen.Drawn() {
		return nil
	}
	d.printing = true
	return tea.Sequence(tea.Println(d.next()), func() tea.Msg { return printedMsg{} })
}

// next takes as many lines as can be printed at once: the renderer makes room for them by scrolling, and
// loses lines if they and the lower part of the screen are higher than the screen. The lower part is taken
// to be as high as it was lately, because what is on the screen may be older than what is drawn next.
func (d *drawn) next() string {
	n := min(len(d.waiting), max(1, d.height-slices.Max(d.heights[:])-1))
	lines := strings.Join(d.waiting[:n], "\n")
	d.waiting = d.waiting[n:]
	if lines == "" {
		return " " // the renderer drops an empty text
	}
	return lines
}

// quit ends the session after everything is printed.
func (d *drawn) quit() tea.Cmd {
	d.ended = true
	var cmds []tea.Cmd
	for len(d.waiting) > 0 {
		cmds = append(cmds, tea.Println(d.next()))
	}
	return tea.Sequence(append(cmds, tea.Quit)...)
}

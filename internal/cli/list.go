package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/cli/track"
	"deckhand/internal/session"
	"deckhand/internal/terminal"
)

// List is deckhand list.
type List struct {
	RemoteFlags
	All    bool   `name:"all" short:"a" help:"List all conversations, not only the 20 newest."`
	JSON   bool   `name:"json" help:"Print one JSON object per line."`
	Query  string `name:"query" short:"q" placeholder:"TEXT" help:"Only conversations whose title, repository or ID contains this text."`
	Status string `name:"status" enum:",starting,running,stopped" default:"" placeholder:"STATUS" help:"Only conversations with this status: starting, running or stopped."`
}

// Help implements kong.HelpProvider.
func (List) Help() string {
	return serverHelp + `

Examples:
  deckhand list --query flaky
  deckhand list --all --json | jq -r .conversation_id`
}

// Session is a conversation in a folder of this machine.
type Session struct {
	api.Conversation
	Folder string `json:"folder,omitempty"`
}

// Sessions lists the sessions in folders of this machine, newest first, at least as many as are enough if
// there are so many.
type Sessions func(ctx context.Context, dataDir string, enough int) []Session

// aPage is how many conversations are asked for at once.
const aPage = 20

// Run lists conversations, newest first: those of a server, and the sessions in folders.
func (c *List) Run(ctx context.Context, o *Output, sessions Sessions) error {
	all, more, err := c.onServer(ctx)
	local := c.inFolders(ctx, sessions)
	if err != nil && len(local) == 0 {
		return err
	}
	if _, none := os.Stat(filepath.Join(c.DataDir, "deckhand.db")); err != nil && none == nil { // a server was here
		fmt.Fprintln(o.Stderr, "only sessions in folders are listed:", err)
	}
	all = append(all, local...)
	slices.SortStableFunc(all, func(a, b Session) int { return b.CreatedAt.Compare(a.CreatedAt) })
	if !c.All && len(all) > aPage {
		all, more = all[:aPage], true
	}
	if c.JSON {
		for _, one := range all {
			if err := terminal.PrintJSON(o.Stdout, one); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all) == 0 {
		fmt.Fprintln(o.Stderr, "no conversations")
		return nil
	}
	if err := table(o.Stdout, all, time.Now()); err != nil {
		return err
	}
	if more {
		fmt.Fprintln(o.Stderr, "more conversations: deckhand list --all")
	}
	return nil
}

// onServer lists the conversations of the server.
func (c *List) onServer(ctx context.Context) (all []Session, more bool, err error) {
	r, err := c.Connect()
	if err != nil {
		return nil, false, err
	}
	query := url.Values{"limit": {strconv.Itoa(aPage)}}
	if c.Query != "" {
		query.Set("query", c.Query)
	}
	if c.Status != "" {
		query.Set("status", strings.ToUpper(c.Status))
	}
	for {
		page, err := r.Conversations(ctx, query)
		if err != nil {
			return nil, false, Plainly(err)
		}
		for _, one := range page.Results {
			all = append(all, Session{Conversation: one})
		}
		if page.NextPageID == nil || !c.All {
			return all, page.NextPageID != nil, nil
		}
		query.Set("page_id", *page.NextPageID)
	}
}

// inFolders lists the sessions of this machine, unless another server is meant.
func (c *List) inFolders(ctx context.Context, sessions Sessions) []Session {
	if c.Server != "" {
		return nil
	}
	enough := aPage + 1
	if c.All || c.Query != "" || c.Status != "" {
		enough = math.MaxInt
	}
	text := strings.ToLower(c.Query)
	return slices.DeleteFunc(sessions(ctx, c.DataDir, enough), func(s Session) bool {
		return c.Status != "" && !strings.EqualFold(s.Status, c.Status) ||
			!strings.Contains(strings.ToLower(s.Title+"\n"+s.Folder+"\n"+s.ConversationID), text)
	})
}

// table prints conversations for people.
func table(w io.Writer, all []Session, now time.Time) error {
	width, short := 0, math.MaxInt
	if screen, ok := w.(*os.File); ok {
		width = Columns(screen)
	}
	if width > 0 {
		short = unlike(all)
	}
	t := terminal.Table{Width: width, Color: width > 0 && WantsColour()}
	row := func(id, state, cost, age, title terminal.Cell) {
		if width > 0 && width < roomForAll {
			t.Row(id, state, title)
			return
		}
		t.Row(id, state, cost, age, title)
	}
	row(cell("ID"), cell("STATE"), cell("COST"), cell("UPDATED"), cell("TITLE"))
	for _, c := range all {
		id := c.ConversationID[:min(short, len(c.ConversationID))]
		word, look := StateOf(c.Conversation)
		title := c.Title
		if c.SelectedRepository != nil {
			title += " (" + *c.SelectedRepository + ")"
		}
		if c.Folder != "" {
			title = strings.TrimSpace(title + " (" + Short(c.Folder) + ")")
		}
		row(cell(id), terminal.Cell{Text: word, Look: look}, cell(fmt.Sprintf("$%.2f", c.AccumulatedCost)), cell(Age(now.Sub(c.LastUpdatedAt))), cell(title))
	}
	return t.Write(w)
}

// Short is a path with a tilde for the home folder.
func Short(path string) string {
	home, err := os.UserHomeDir()
	if rest, ok := strings.CutPrefix(path, home); err == nil && home != "/" && ok && (rest == "" || rest[0] == filepath.Separator) {
		return "~" + rest
	}
	return path
}

// roomForAll is how wide a terminal has to be for costs and ages, too.
const roomForAll = 60

func cell(text string) terminal.Cell { return terminal.Cell{Text: text} }

// WantsColour follows the conventions of terminals.
func WantsColour() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

// leastID is how many characters of an id are shown at least.
const leastID = 8

// unlike is how many characters tell the ids apart.
func unlike(all []Session) int {
	for n := leastID; ; n++ {
		seen, longer, same := map[string]bool{}, false, false
		for _, c := range all {
			id := c.ConversationID[:min(n, len(c.ConversationID))]
			same = same || seen[id]
			seen[id] = true
			longer = longer || len(c.ConversationID) > n
		}
		if !same || !longer {
			return n
		}
	}
}

// StateOf is what the agent does, in a word.
func StateOf(c api.Conversation) (word string, look terminal.Look) {
	switch {
	case c.Queue != nil:
		return track.Queued(*c.Queue), terminal.Busy
	case c.Status == "STARTING":
		return "starting", terminal.Busy
	case c.Status == "STOPPED" && c.ErrorID != nil:
		return "failed", terminal.Bad
	case c.Status == "STOPPED" && (&track.Agent{State: session.AgentState(c.AgentState)}).Working(): // its process died
		return "interrupted", terminal.Asks
	case c.AgentState == string(session.AgentAwaitingUser) && c.Reason != nil && *c.Reason == session.ReasonQuestion:
		return "question", terminal.Asks
	}
	return track.Word(session.AgentState(c.AgentState))
}

// Age is a time that has passed, in one unit.
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

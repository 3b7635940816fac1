package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"deckhand/api"
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

// aPage is how many conversations are asked for at once.
const aPage = 20

// Run lists conversations, newest first.
func (c *List) Run(ctx context.Context, o *Output) error {
	r, err := c.Connect()
	if err != nil {
		return err
	}
	query := url.Values{"limit": {strconv.Itoa(aPage)}}
	if c.Query != "" {
		query.Set("query", c.Query)
	}
	if c.Status != "" {
		query.Set("status", strings.ToUpper(c.Status))
	}
	var all []api.Conversation
	more := true
	for more {
		page, err := r.Conversations(ctx, query)
		if err != nil {
			return plainly(err)
		}
		all = append(all, page.Results...)
		if more = page.NextPageID != nil; more {
			if !c.All {
				break
			}
			query.Set("page_id", *page.NextPageID)
		}
	}
	if c.JSON {
		e := json.NewEncoder(o.Stdout)
		e.SetEscapeHTML(false)
		for _, one := range all {
			if err := e.Encode(one); err != nil {
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

// table prints conversations for people.
func table(w io.Writer, all []api.Conversation, now time.Time) error {
	width, short := 0, 0
	if screen, ok := w.(*os.File); ok {
		width = columns(screen)
	}
	colour := width > 0 && wantsColour()
	if width > 0 {
		short = unlike(all)
	}
	t := terminal.Table{Width: width, Color: colour}
	row := func(id, state, cost, age, title terminal.Cell) {
		if width > 0 && width < roomForAll {
			t.Row(id, state, title)
			return
		}
		t.Row(id, state, cost, age, title)
	}
	row(cell("ID"), cell("STATE"), cell("COST"), cell("AGE"), cell("TITLE"))
	for _, c := range all {
		id := c.ConversationID
		if short > 0 {
			id = id[:min(short, len(id))]
		}
		word, look := StateOf(c)
		title := c.Title
		if c.SelectedRepository != nil {
			title += " (" + *c.SelectedRepository + ")"
		}
		row(cell(id), terminal.Cell{Text: word, Look: look}, cell(fmt.Sprintf("$%.2f", c.AccumulatedCost)), cell(age(now.Sub(c.LastUpdatedAt))), cell(title))
	}
	return t.Write(w)
}

// roomForAll is how wide a terminal has to be for costs and ages, too.
const roomForAll = 60

func cell(text string) terminal.Cell { return terminal.Cell{Text: text} }

// wantsColour follows the conventions of terminals.
func wantsColour() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

// leastID is how many characters of an id are shown at least.
const leastID = 8

// unlike is how many characters tell the ids apart.
func unlike(all []api.Conversation) int {
	for n := leastID; ; n++ {
		seen, longer := map[string]bool{}, false
		same := false
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
	case c.Status == "STARTING":
		return "starting", terminal.Busy
	case c.Status == "STOPPED" && c.ErrorID != nil:
		return "failed", terminal.Bad
	}
	return stateWord(session.AgentState(c.AgentState))
}

// stateWord is a state as people say it.
func stateWord(s session.AgentState) (word string, look terminal.Look) {
	switch s {
	case session.AgentRunning, session.AgentUserYes, session.AgentUserNo:
		return "working", terminal.Busy
	case session.AgentLoading:
		return "starting", terminal.Busy
	case session.AgentAwaitingUser:
		return "your turn", terminal.Good
	case session.AgentAwaitingYes:
		return "needs approval", terminal.Asks
	case session.AgentFinished:
		return "finished", terminal.Good
	case session.AgentError:
		return "error", terminal.Bad
	case session.AgentRateLimited:
		return "rate limited", terminal.Asks
	}
	return string(s), terminal.Plain
}

// age is a time that has passed, in one unit.
func age(d time.Duration) string {
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

package takeover

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"deckhand/internal/gitprovider"
	"deckhand/internal/session"
	"deckhand/internal/v0"
)

// metadata is what metadata.json says, as far as it is used. Nothing of it is believed.
type metadata struct {
	ID               string   `json:"conversation_id"`
	Title            string   `json:"title"`
	Repository       string   `json:"selected_repository"`
	Branch           string   `json:"selected_branch"`
	Provider         string   `json:"git_provider"`
	Trigger          string   `json:"trigger"`
	CreatedAt        string   `json:"created_at"`
	UpdatedAt        string   `json:"last_updated_at"`
	Requests         []int    `json:"pr_number"`
	Model            string   `json:"llm_model"`
	Cost             *float64 `json:"accumulated_cost"`
	PromptTokens     int64    `json:"prompt_tokens"`
	CompletionTokens int64    `json:"completion_tokens"`
}

// triggers are the ways in which a conversation is begun.
var triggers = []string{"resolver", "gui", "suggested_task", "openhands_api", "slack", "microagent_management", "jira", "jira_dc", "linear", "bitbucket"}

// conversation takes over one. The error is of the database.
func (m *Import) conversation(ctx context.Context, f *folder, p place, taken map[session.ID]bool) (Conversation, error) {
	c := Conversation{From: shown(p.path), State: Failed}
	err := m.takeOver(ctx, f, p, taken, &c)
	c.close()
	return c, err
}

func (m *Import) takeOver(ctx context.Context, f *folder, p place, taken map[session.ID]bool, c *Conversation) error {
	id, known, err := m.identify(ctx, p, taken)
	if err != nil {
		return err
	}
	taken[id] = true
	c.ID = string(id)
	if string(id) != p.name {
		c.note("imported with the ID %s: the original ID is invalid or already in use", id)
	}
	if known != nil {
		c.State, c.Title = Present, known.Title
		if known.Deleted {
			c.note("skipped: it was deleted on this server")
		}
		return nil
	}
	meta, found := m.metadata(f, p.path, c)
	r, err := m.reader(f, p.path, c)
	if err != nil {
		c.problem("%v", err)
		return nil
	}
	if !found && len(r.numbers) == 0 {
		c.problem("no metadata.json and no events found")
		return nil
	}
	events, err := m.log(ctx, r, meta, c)
	if errors.Is(err, errSize) {
		c.problem("%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	batches, st, err := session.Import(id, events)
	if err != nil { // a bug in the converter; import the others
		c.problem("its events are not a valid history: %v", err)
		return nil
	}
	c.Title = st.Title
	if !m.DryRun {
		err = m.Store.AppendAll(ctx, batches)
	}
	switch {
	case errors.Is(err, session.ErrConflict): // created concurrently
		c.State = Present
	case err != nil:
		return err
	default:
		c.State = Imported
	}
	return nil
}

// identify finds the id for a conversation: its own if that is one and free, and else
// one that is made of its folder, so that the next run finds it again. known is what
// is here under that id.
func (m *Import) identify(ctx context.Context, p place, taken map[session.ID]bool) (id session.ID, known *session.Row, err error) {
	sum := sha256.Sum256([]byte("taken over\x00" + m.User + "\x00" + p.path))
	for _, id := range []session.ID{session.ID(p.name), session.ID(hex.EncodeToString(sum[:16]))} {
		if id.Check() != nil || taken[id] {
			continue
		}
		row, err := m.Store.Row(ctx, id)
		switch {
		case errors.Is(err, session.ErrNotFound):
			return id, nil, nil
		case err != nil:
			return "", nil, err
		case row.Owner == m.User:
			return id, &row, nil
		}
	}
	return session.NewID(), nil, nil // not even made-up ids are free: a hostile coincidence
}

// metadata reads what is known of the conversation as a whole.
func (m *Import) metadata(f *folder, dir string, c *Conversation) (metadata, bool) {
	var meta metadata
	raw, err := f.read(path.Join(dir, "metadata.json"), maxFile)
	if err == nil {
		raw, err = masked(raw, m.Masker.String)
	}
	if err != nil {
		c.problem("cannot read metadata.json (%v): title, repository and times are lost", err)
		return meta, false
	}
	// A field of a wrong type is left out, the others are still worth having.
	if err := json.Unmarshal(raw, &meta); err != nil {
		c.problem("metadata.json: skipped a field with an invalid value")
	}
	if meta.Repository != "" && !gitprovider.ValidRepository(meta.Repository) {
		c.problem("metadata.json: skipped selected_repository: not a repository name")
		meta.Repository, meta.Branch = "", ""
	}
	if meta.Branch != "" && !gitprovider.ValidBranch(meta.Branch) {
		c.problem("metadata.json: skipped selected_branch: not a branch name")
		meta.Branch = ""
	}
	if meta.Provider != "" && !slices.Contains(gitprovider.Names(), meta.Provider) {
		c.problem("metadata.json: skipped git_provider: unknown provider")
		meta.Provider = ""
	}
	if meta.Trigger != "" && !slices.Contains(triggers, meta.Trigger) {
		c.note("skipped its trigger: unknown trigger")
		meta.Trigger = ""
	}
	meta.Title = title(meta.Title)
	return meta, true
}

// title is one line of at most 200 characters.
func title(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	runes := []rune(strings.TrimSpace(s))
	return strings.TrimSpace(string(runes[:min(len(runes), 200)]))
}

// log is the conversation in our events, from its creation to a stop.
func (m *Import) log(ctx context.Context, r *reader, meta metadata, c *Conversation) ([]session.Event, error) {
	head := m.head(meta, c)
	conv := newConverter(len(head), m.Zone, m.Now())
	for i, n := range r.numbers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if m.Reading != nil {
			m.Reading(c.ID, i, len(r.numbers))
		}
		raw, err := r.get(n)
		if errors.Is(err, errSize) {
			return nil, err
		}
		var past v0.Past
		if err == nil {
			past, err = v0.ReadPast(raw)
		}
		if err == nil {
			err = conv.add(n, past)
		}
		if err != nil {
			c.problem("skipped event %d: %v", n, err)
			continue
		}
		if past.Kind != "null" {
			c.Events++
		}
	}
	conv.settle()
	created := head[0].Payload.(session.Created)
	created.Instructions, created.Before = conv.instructions, sums(meta, conv.spent)
	head[0].Payload = created
	began, ended := m.times(meta, conv)
	for i := range head {
		head[i].At = began
	}
	for i := range conv.events {
		if conv.events[i].At.IsZero() {
			conv.events[i].At = began
		}
	}
	return slices.Concat(head, conv.events, []session.Event{{At: ended, Payload: session.Stopped{Reason: "The conversation was imported from another server."}}}), nil
}

// head is what stands before the events: the conversation, its name, its pull requests.
func (m *Import) head(meta metadata, c *Conversation) []session.Event {
	head := []session.Event{{Payload: session.Created{Owner: m.User, Trigger: meta.Trigger, Repository: meta.Repository, Branch: meta.Branch, Provider: meta.Provider}}}
	if meta.Title != "" {
		head = append(head, session.Event{Payload: session.Titled{Title: meta.Title, ByUser: true}})
	}
	seen := map[int]bool{}
	for _, n := range meta.Requests {
		switch {
		case n < 1 || seen[n]:
		case meta.Repository == "":
			c.problem("skipped pull request %d: it has no repository", n)
		default:
			seen[n] = true
			head = append(head, session.Event{Payload: session.RequestOpened{Provider: meta.Provider, Repository: meta.Repository, Number: n}})
		}
	}
	return head
}

// times are when it began and when it changed last. Those of the metadata are UTC.
func (m *Import) times(meta metadata, conv *converter) (began, ended time.Time) {
	now := m.Now().UTC().Truncate(time.Microsecond)
	began, ok := moment(meta.CreatedAt, time.UTC)
	if !ok || began.After(conv.latest) {
		began = now
		if i := slices.IndexFunc(conv.events, func(e session.Event) bool { return !e.At.IsZero() }); i >= 0 {
			began = conv.events[i].At
		}
	}
	ended = began
	if conv.at.After(ended) {
		ended = conv.at
	}
	if t, ok := moment(meta.UpdatedAt, time.UTC); ok && t.After(ended) && t.Before(conv.latest) {
		ended = t
	}
	return began, ended
}

// sums are what it cost, as the metadata or the last event that says so has it,
// whichever is more.
func sums(meta metadata, last session.Totals) session.Totals {
	t := last
	if t.Model == "" {
		t.Model = meta.Model
	}
	if meta.Cost != nil && *meta.Cost >= 0 && *meta.Cost <= 1e6 {
		t.Cost = max(t.Cost, session.FromDollars(*meta.Cost))
	}
	t.Input, t.Output = max(t.Input, meta.PromptTokens, 0), max(t.Output, meta.CompletionTokens, 0)
	return t
}

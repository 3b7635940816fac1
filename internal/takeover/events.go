package takeover

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// reader hands out the stored events of one conversation, each with its secrets masked.
type reader struct {
	folder  *folder
	dir     string
	numbers []int64 // of all events that may be had, in order
	pages   []page
	mask    func(string) string
	// open is the page that was read last, by the ids of its events.
	open   string
	inPage map[int64]jsontext.Value
	read   int64 // bytes so far
}

// reader opens a conversation's events and says what of them is missing.
func (m *Import) reader(f *folder, dir string, c *Conversation) (*reader, error) {
	numbers, others, err := f.events(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the events: %w", err)
	}
	if others > 0 {
		c.note("skipped %d files that are not events", others)
	}
	r := &reader{folder: f, dir: dir, numbers: numbers, pages: f.pages(dir), mask: m.Masker.String}
	for _, p := range r.pages {
		for n := p.from; n < p.to; n++ {
			if _, ok := r.paged(n); ok {
				r.numbers = append(r.numbers, n)
			}
		}
	}
	slices.Sort(r.numbers)
	r.numbers = slices.Compact(r.numbers)
	if len(r.numbers) > maxEvents {
		return nil, fmt.Errorf("it has %d events; the limit is %d", len(r.numbers), maxEvents)
	}
	if text := gaps(r.numbers); text != "" {
		c.problem("events are missing: %s", text)
	}
	return r, nil
}

// gaps are the numbers that are not there, in words.
func gaps(numbers []int64) string {
	var parts []string
	next := int64(0)
	for _, n := range numbers {
		switch n - next {
		case 0:
		case 1:
			parts = append(parts, strconv.FormatInt(next, 10))
		default:
			parts = append(parts, fmt.Sprintf("%d to %d", next, n-1))
		}
		next = n + 1
	}
	if len(parts) > 10 {
		parts = append(parts[:10], fmt.Sprintf("and %d more ranges", len(parts)-10))
	}
	return strings.Join(parts, ", ")
}

// paged finds an event in the page that has it.
func (r *reader) paged(n int64) (jsontext.Value, bool) {
	i := slices.IndexFunc(r.pages, func(p page) bool { return p.from <= n && n < p.to })
	if i < 0 {
		return nil, false
	}
	if r.open != r.pages[i].name {
		r.open, r.inPage = r.pages[i].name, map[int64]jsontext.Value{}
		raw, err := r.folder.read(r.open, maxPage)
		var items []jsontext.Value
		if err != nil || json.Unmarshal(raw, &items, lenient) != nil {
			return nil, false
		}
		for _, item := range items {
			var e struct {
				ID *int64 `json:"id"`
			}
			if json.Unmarshal(item, &e, lenient) == nil && e.ID != nil {
				r.inPage[*e.ID] = item
			}
		}
	}
	v, ok := r.inPage[n]
	return v, ok
}

// lenient takes the half characters that the legacy server writes without a thought.
var lenient = jsontext.AllowInvalidUTF8(true)

var errSize = errors.New("the conversation is larger than 1 GiB")

// get returns one event: from its file, or from a page if that is not to be used.
func (r *reader) get(n int64) ([]byte, error) {
	raw, err := r.folder.read(path.Join(r.dir, "events", strconv.FormatInt(n, 10)+".json"), maxEvent)
	var out []byte
	if err == nil {
		out, err = masked(raw, r.mask)
	}
	if err != nil {
		if v, ok := r.paged(n); ok && len(v) <= maxEvent {
			if again, problem := masked(v, r.mask); problem == nil {
				out, err = again, nil
			}
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("not found")
	}
	if r.read += int64(len(out)); r.read > maxConversation {
		return nil, errSize
	}
	return out, err
}

var errJSON = errors.New("not valid JSON; the file may be truncated")

// masked is a JSON text in its shortest form, with the secrets in all of its strings
// masked, wherever they stand. The legacy server missed those in lists.
func masked(raw []byte, mask func(string) string) ([]byte, error) {
	in := jsontext.NewDecoder(bytes.NewReader(raw), lenient)
	var out bytes.Buffer
	to := jsontext.NewEncoder(&out, lenient)
	for {
		t, err := in.ReadToken()
		if err != nil {
			return nil, errJSON
		}
		if t.Kind() == '"' {
			if s := t.String(); s != "" {
				t = jsontext.String(mask(strings.ToValidUTF8(s, "\uFFFD")))
			}
		}
		if err := to.WriteToken(t); err != nil { // two names became the same
			return nil, errJSON
		}
		if in.StackDepth() == 0 {
			break
		}
	}
	if len(bytes.TrimSpace(raw[in.InputOffset():])) > 0 {
		return nil, errJSON
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

package files

import (
	"context"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/sandbox"
)

const aboutMentions = "Finds files, folders and definitions by a part of their name, ignoring case, for completion in a message. Without a query: the files that changed last. " +
	"What git ignores is omitted. Symbols need two characters and are found by the form of their definition. " + aboutNames

// maxMentions is how many are found of each kind.
const maxMentions = 12

type mentionsQuery struct {
	ID    string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
	Query string `query:"query" maxLength:"200" doc:"Part of a name, or of a path if it has a slash."`
}

func (d *Handlers) listMentions(ctx context.Context, c *rest.Call, q mentionsQuery, _ rest.None) (api.Mentions, error) {
	v, err := d.view(ctx, c, q.ID)
	if err != nil {
		return api.Mentions{}, err
	}
	defer v.Close()
	out := api.Mentions{Mentions: []api.Mention{}}
	err = v.Search(ctx, func(box *sandbox.Sandbox) error {
		pattern := namePattern(q.Query)
		for _, kind := range []string{"file", "folder"} {
			form := pattern
			if kind == "folder" {
				form += "/"
			}
			found, err := box.Glob(ctx, sandbox.GlobParams{Pattern: form})
			if _, refused := sandbox.Refusal(err); err != nil && !refused {
				return err
			}
			for _, p := range found.Paths[:min(len(found.Paths), maxMentions)] {
				at := below(string(found.Root), string(p))
				m := api.Mention{Kind: kind, Name: api.EncodeName([]byte(path.Base(at))), Path: api.EncodeName([]byte(at))}
				if kind == "folder" {
					m.Path += "/"
				}
				out.Mentions = append(out.Mentions, m)
			}
		}
		symbols, err := symbols(ctx, box, q.Query)
		out.Mentions = append(out.Mentions, symbols...)
		return err
	})
	return out, err
}

// below is a path relative to a folder.
func below(root, at string) string {
	return strings.TrimPrefix(strings.TrimPrefix(at, strings.TrimSuffix(root, "/")), "/")
}

// namePattern is the glob for names that contain the query, and for paths if it has a slash.
func namePattern(query string) string {
	parts := strings.Split(strings.Trim(query, "/"), "/")
	for i, part := range parts {
		var b strings.Builder
		b.WriteByte('*')
		for _, r := range part {
			lower, upper := unicode.ToLower(r), unicode.ToUpper(r)
			switch {
			case lower != upper:
				b.WriteString("[" + string(lower) + string(upper) + "]")
			case strings.ContainsRune(`*?[]{}\!`, r):
				b.WriteByte('?')
			default:
				b.WriteRune(r)
			}
		}
		b.WriteByte('*')
		parts[i] = strings.ReplaceAll(b.String(), "**", "*")
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "**/" + strings.Join(parts, "/")
}

const keywords = `func|function|class|def|type|interface|struct|enum|trait|fn|const|let|var|module|impl|object|record|val`

// symbols finds definitions by their form: a keyword before the name.
func symbols(ctx context.Context, box *sandbox.Sandbox, query string) ([]api.Mention, error) {
	if len(query) < 2 || strings.ContainsAny(query, "/ ") || !utf8.ValidString(query) {
		return nil, nil
	}
	form := `^\s*(?:[a-z]+\s+){0,3}(?:` + keywords + `)\s+(?:\([^)]*\)\s*)?\w*` + regexp.QuoteMeta(query) + `\w*`
	name := regexp.MustCompile(`(?i)\w*` + regexp.QuoteMeta(query) + `\w*`)
	found, err := box.Grep(ctx, sandbox.GrepParams{Pattern: form, IgnoreCase: true})
	if _, refused := sandbox.Refusal(err); refused {
		return nil, nil
	}
	var out []api.Mention
	for _, f := range found.Files {
		for _, l := range f.Lines {
			if !l.Match || len(out) == maxMentions {
				continue
			}
			at := below(string(found.Root), string(f.Path))
			out = append(out, api.Mention{Kind: "symbol", Name: name.FindString(l.Text), Path: api.EncodeName([]byte(at)), Line: l.Number})
		}
	}
	return out, err
}

package takeover

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"deckhand/api"
	"deckhand/internal/settings"
)

// document is a JSON object, taken apart as far as it must be.
type document = map[string]any

// settings takes over settings.json and secrets.json: what POST /api/settings would
// accept, by the same rules. The error is of the database.
func (m *Import) settings(ctx context.Context, f *folder) (Settings, error) {
	var out Settings
	doc := m.object(f, "settings.json", &out)
	secrets := m.object(f, "secrets.json", &out)
	if !out.Found {
		return out, nil
	}
	if doc == nil {
		doc = document{}
	}
	if store := joined(doc["secrets_store"], secrets); len(store) > 0 {
		doc["secrets_store"] = store
	} else {
		delete(doc, "secrets_store")
	}
	m.Masker.Add(hidden(doc)...) // whatever becomes of them, events must not show them
	drop(doc, &out)

	old, err := m.stored(ctx)
	if err != nil {
		return out, err
	}
	if old != nil && !m.Overwrite {
		keep(doc, *old, &out)
	}
	in := accepted(doc, old, &out)
	out.Imported = named(doc)
	for _, name := range in.Unknown() {
		out.Notes = append(out.Notes, name+" skipped: unknown setting")
	}
	out.Imported = slices.DeleteFunc(out.Imported, func(name string) bool { return slices.Contains(in.Unknown(), name) })
	if len(out.Imported) == 0 || m.DryRun {
		return out, nil
	}
	changes, err := m.Settings.Update(ctx, m.User, in)
	out.Notes = append(out.Notes, changes.Notes...)
	return out, err
}

// object reads a file that holds one; nil if there is none.
func (m *Import) object(f *folder, name string, out *Settings) document {
	at := name
	if m.LegacyUser != "" {
		at = path.Join("users", m.LegacyUser, name)
	}
	raw, err := f.read(at, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	out.Found = true
	var doc document
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if d.Decode(&doc) != nil || doc == nil {
			err = errors.New("not a JSON object; the file may be truncated")
		}
	}
	if err != nil {
		out.Refused = append(out.Refused, fmt.Sprintf("%s: %v", name, err))
		return nil
	}
	return doc
}

// stored are the user's settings here, nil if there are none.
func (m *Import) stored(ctx context.Context) (*settings.Settings, error) {
	old, err := m.Settings.Get(ctx, m.User)
	switch {
	case errors.Is(err, settings.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &old, nil
}

// joined are the secrets of both files. Very old versions kept them in settings.json.
func joined(inSettings any, secrets document) document {
	out := document{}
	for _, list := range []struct{ name, value, second, third string }{
		{"provider_tokens", "token", "host", "user_id"}, {"custom_secrets", "secret", "description", ""},
	} {
		entries := document{}
		old, _ := inSettings.(document)
		for _, from := range []document{old, secrets} {
			part, _ := from[list.name].(document)
			for name, v := range part {
				if e := entry(v, list.value, list.second, list.third); e != nil {
					entries[name] = e
				}
			}
		}
		if len(entries) > 0 {
			out[list.name] = entries
		}
	}
	return out
}

// entry is one secret with the members that have a meaning; nil if it has no value.
func entry(v any, value string, others ...string) document {
	if s, ok := v.(string); ok {
		v = document{value: s}
	}
	from, _ := v.(document)
	out := document{}
	for _, name := range append(others, value) {
		if s, ok := from[name].(string); ok && s != "" {
			out[name] = s
		}
	}
	if out[value] == nil && out["host"] == nil {
		return nil
	}
	return out
}

// secretFields are the settings that are secret.
var secretFields = []string{"llm_api_key", "search_api_key", "sandbox_api_key"}

// hidden are all secrets of the files.
func hidden(doc document) []string {
	var out []string
	var walk func(v any, secret bool)
	walk = func(v any, secret bool) {
		switch v := v.(type) {
		case string:
			if secret {
				out = append(out, v)
			}
		case []any:
			for _, e := range v {
				walk(e, secret)
			}
		case document:
			for name, e := range v {
				walk(e, secret || slices.Contains([]string{"token", "secret", "api_key", "env"}, name))
			}
		}
	}
	for _, name := range secretFields {
		walk(doc[name], true)
	}
	walk(doc["secrets_store"], false)
	walk(doc["mcp_config"], false)
	return out
}

// drop leaves out what says nothing: null, and masks that took the place of secrets.
func drop(doc document, out *Settings) {
	maps.DeleteFunc(doc, func(_ string, v any) bool { return v == nil })
	for _, name := range secretFields {
		switch doc[name] {
		case api.Masked:
			out.Notes = append(out.Notes, name+" is masked: the legacy server overwrote the value when it saved. Enter it again")
			fallthrough
		case "":
			delete(doc, name)
		}
	}
}

// model are the settings that belong together: a key is for the server it was given for.
var model = []string{"llm_model", "llm_api_key", "llm_base_url"}

// keep takes out of doc what the user has stored here already.
func keep(doc document, old settings.Settings, out *Settings) {
	have := document{}
	if raw, err := json.Marshal(settings.View(old)); err == nil {
		_ = json.Unmarshal(raw, &have)
	}
	for _, name := range secretFields {
		have[name] = have[name+"_set"]
	}
	set := func(name string) bool {
		v := have[name]
		return v != nil && v != "" && (v != false || !strings.HasSuffix(name, "_key"))
	}
	together := slices.ContainsFunc(model, set)
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		if name != "secrets_store" && (set(name) || together && slices.Contains(model, name)) {
			delete(doc, name)
			out.Kept = append(out.Kept, name)
		}
	}
	store, _ := doc["secrets_store"].(document)
	taken := func(list string, stored func(name string) bool) {
		entries, _ := store[list].(document)
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			if stored(name) {
				delete(entries, name)
				out.Kept = append(out.Kept, list+"."+shown(name))
			}
		}
	}
	taken("provider_tokens", func(name string) bool { _, ok := old.ProviderTokens[name]; return ok })
	taken("custom_secrets", func(name string) bool { _, ok := old.CustomSecrets[name]; return ok })
}

// accepted takes out of doc what is refused, until the rest is accepted.
func accepted(doc document, old *settings.Settings, out *Settings) api.SettingsInput {
	for {
		var in api.SettingsInput
		raw, err := json.Marshal(doc)
		if err == nil {
			err = json.Unmarshal(raw, &in)
		}
		if err == nil {
			_, _, err = settings.Merge(old, in)
		}
		bad, ok := errors.AsType[*api.ValidationError](err)
		if !ok {
			return in
		}
		// From the back: what is taken out of a list must not move what is taken out next.
		slices.SortStableFunc(bad.Detail, func(a, b api.FieldError) int { return cmp.Compare(index(b.Loc), index(a.Loc)) })
		before := len(raw)
		gone := map[string]bool{}
		for _, d := range bad.Detail {
			out.Refused = append(out.Refused, spelled(d.Loc[1:])+": "+d.Msg)
			part := spelled(d.Loc[1:min(4, len(d.Loc))])
			if !gone[part] {
				cut(doc, d.Loc[1:])
			}
			gone[part] = true
		}
		if raw, _ = json.Marshal(doc); len(raw) == before { // nothing could be taken out
			clear(doc)
		}
	}
}

// index is the place in a list that a path leads to, if it leads to one.
func index(loc []any) int {
	if len(loc) > 3 {
		if i, ok := loc[3].(int); ok {
			return i
		}
	}
	return -1
}

// cut takes the smallest part out of doc that stands for itself: one secret, one tool
// server, or else the whole setting.
func cut(doc document, loc []any) {
	if len(loc) == 0 {
		return
	}
	field, _ := loc[0].(string)
	parts, nested := doc[field].(document)
	if !nested || len(loc) == 1 {
		delete(doc, field)
		return
	}
	list, _ := loc[1].(string)
	switch entries := parts[list].(type) {
	case document:
		if len(loc) > 2 {
			name, _ := loc[2].(string)
			delete(entries, name)
			return
		}
	case []any:
		if len(loc) > 2 {
			if i, ok := loc[2].(int); ok && i < len(entries) {
				parts[list] = slices.Delete(entries, i, i+1)
			}
			return
		}
	}
	delete(parts, list)
}

// spelled is a path for people.
func spelled(loc []any) string {
	parts := make([]string, len(loc))
	for i, l := range loc {
		parts[i] = shown(fmt.Sprint(l))
	}
	return strings.Join(parts, ".")
}

// named are the settings in doc, secrets one by one.
func named(doc document) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		store, ok := doc[name].(document)
		if name != "secrets_store" || !ok {
			out = append(out, name)
			continue
		}
		for _, list := range slices.Sorted(maps.Keys(store)) {
			entries, _ := store[list].(document)
			for _, secret := range slices.Sorted(maps.Keys(entries)) {
				out = append(out, list+"."+shown(secret))
			}
		}
	}
	return out
}

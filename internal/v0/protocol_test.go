package v0_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/secret"
	"deckhand/internal/tool"
	"deckhand/internal/v0"
)

// leaves calls visit with the path of each string of a JSON value, and with each name
// of a field that is not free.
func leaves(v any, path string, free []string, visit func(path, text string), name func(string)) {
	switch v := v.(type) {
	case string:
		visit(path, v)
	case []any:
		for _, e := range v {
			leaves(e, path, free, visit, name)
		}
	case map[string]any:
		for k, e := range v {
			if !slices.ContainsFunc(free, func(f string) bool { return path == f || strings.HasPrefix(path, f+".") }) {
				name(k)
			}
			leaves(e, strings.TrimPrefix(path+"."+k, "."), free, visit, name)
		}
	}
}

// Whatever a user's secrets are, the fields that clients go by stay as they are, and
// so do the names of all fields. Text is masked.
func TestProtocolFieldsAreNeverMasked(t *testing.T) {
	t.Parallel()
	shape := secret.NewShape(v0.Protocol(), v0.FreeForm(), v0.Coded())
	kept := func(path string) bool {
		return slices.ContainsFunc(v0.Protocol(), func(p string) bool {
			return path == p || strings.HasPrefix(path, p+".") && !strings.HasSuffix(path, ".description")
		})
	}
	met, masked := map[string]bool{}, 0
	for _, c := range allCases() {
		f, err := v0.Encode(convo, c.event())
		if err != nil || f.Kind == v0.None {
			continue
		}
		var was, is any
		if err := json.Unmarshal(f.JSON, &was); err != nil {
			t.Fatal(err)
		}
		var values, names, before, after []string
		leaves(was, "", v0.FreeForm(), func(path, text string) {
			values = append(values, text)
			if kept(path) {
				met[path] = true
				before = append(before, path+"="+text)
			}
		}, func(n string) { names = append(names, n) })
		masker := secret.NewMasker(append(values, names...)...)
		if err := json.Unmarshal(masker.JSON(f.JSON, shape), &is); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		leaves(is, "", v0.FreeForm(), func(path, text string) {
			if kept(path) {
				after = append(after, path+"="+text)
			} else if strings.Contains(text, secret.Mask) {
				masked++
			}
		}, func(n string) { names = slices.DeleteFunc(names, func(o string) bool { return o == n }) })
		slices.Sort(before)
		slices.Sort(after)
		if !slices.Equal(before, after) || len(names) > 0 {
			t.Errorf("%s: %q became %q, and these names are gone: %q", c.name, before, after, names)
		}
	}
	if len(met) < 25 || masked < 20 {
		t.Errorf("only %d fields were met, and %d texts masked", len(met), masked)
	}
	// What agents and clients are told by a word cannot be masked in text either.
	for _, word := range append(tool.Names(), "awaiting_user_input", "agent_state_changed", "tool_call_metadata", "awaiting_confirmation", "user_rejected") {
		if secret.Weakness(word) == "" {
			t.Errorf("%s can be masked", word)
		}
	}
}

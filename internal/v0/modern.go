package v0

import (
	stdjson "encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"deckhand/internal/v0/form"
)

// modern converts a stored event of an older version to the current format, as the legacy
// server does. What our log stores itself is omitted.
func modern(event []byte) ([]byte, error) {
	return rewrite(event, func(name string, value jsontext.Value) (jsontext.Value, error) {
		switch {
		case name == "id" || name == "timestamp" || name == "cause":
			return nil, nil
		case name == "args" && value.Kind() == '{':
			return modernArgs(value)
		case name == "extras" && value.Kind() == '{':
			return modernExtras(value)
		}
		return value, nil
	})
}

// modernArgs renames fields that have another name now.
func modernArgs(args []byte) ([]byte, error) {
	have := form.ParseArguments(args)
	var add []string
	out, err := rewrite(args, func(name string, value jsontext.Value) (jsontext.Value, error) {
		switch name {
		case "images_urls":
			add = append(add, "image_urls", name)
		case "is_confirmed":
			add = append(add, "confirmation_state", name)
		case "translated_ipython_code", "keep_prompt":
		default:
			return value, nil
		}
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(add); i += 2 {
		if _, taken := have[add[i]]; !taken {
			out = with(out, add[i], have[add[i+1]])
		}
	}
	return out, nil
}

// modernExtras moves the exit code of a command to its current place.
func modernExtras(extras []byte) ([]byte, error) {
	have := form.ParseArguments(extras)
	code, flat := have["exit_code"]
	if _, nested := have["metadata"]; nested || !flat {
		return extras, nil
	}
	out, err := rewrite(extras, func(name string, value jsontext.Value) (jsontext.Value, error) {
		if name == "exit_code" || name == "command_id" {
			return nil, nil
		}
		return value, nil
	})
	if err != nil {
		return nil, err
	}
	w := newWriter(192)
	w.Open("", '{')
	w.Raw("exit_code", code)
	pid := have["command_id"]
	if len(pid) == 0 {
		pid = stdjson.RawMessage("-1")
	}
	w.Raw("pid", pid)
	for _, name := range []string{"username", "hostname", "working_dir", "py_interpreter_path", "prefix", "suffix"} {
		w.Str(name, "")
	}
	w.Shut('}')
	return with(out, "metadata", w.B), nil
}

// with adds a member to an object.
func with(object []byte, name string, value []byte) []byte {
	w := &form.Writer{B: object[:len(object)-1]}
	w.Raw(name, value)
	w.Shut('}')
	return w.B
}

// Renumber replaces the event IDs in a condensation. Events without a number are dropped.
func Renumber(event []byte, number func(id int64) (int64, bool)) ([]byte, error) {
	return rewrite(event, func(name string, value jsontext.Value) (jsontext.Value, error) {
		if name != "args" || value.Kind() != '{' {
			return value, nil
		}
		return rewrite(value, func(name string, value jsontext.Value) (jsontext.Value, error) {
			switch name {
			case "forgotten_event_ids":
				if value.Kind() != '[' {
					return value, nil
				}
				var list []int64
				for _, id := range form.Details[[]int64](stdjson.RawMessage(value)) {
					if n, ok := number(id); ok {
						list = append(list, n)
					}
				}
				return stdjson.Marshal(append([]int64{}, list...))
			case "forgotten_events_start_id", "forgotten_events_end_id":
				id, ok := whole(value)
				if n, known := number(id); ok && known {
					return stdjson.Marshal(n)
				}
			}
			return value, nil
		})
	})
}

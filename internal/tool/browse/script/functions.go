package script

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// want is what a parameter takes.
type want int

const (
	aText   want = iota // a text; a number is taken at its spelling
	aNumber             // a number
	aList               // a text, or a list of texts
)

// parameter is one of a function's. Those that need not be given come last.
type parameter struct {
	name     string
	want     want
	optional bool
}

func needs(name string, w want) parameter { return parameter{name: name, want: w} }
func may(name string, w want) parameter {
	return parameter{name: name, want: w, optional: true}
}

// functions are all there are.
var functions = map[string][]parameter{
	"goto":          {needs("url", aText)},
	"go_back":       nil,
	"go_forward":    nil,
	"reload":        nil,
	"noop":          {may("wait_ms", aNumber)},
	"scroll":        {needs("delta_x", aNumber), needs("delta_y", aNumber)},
	"fill":          {needs("bid", aText), needs("value", aText)},
	"select_option": {needs("bid", aText), needs("options", aList)},
	"click":         {needs("bid", aText), may("button", aText), may("modifiers", aList)},
	"dblclick":      {needs("bid", aText), may("button", aText), may("modifiers", aList)},
	"hover":         {needs("bid", aText)},
	"press":         {needs("bid", aText), needs("key_comb", aText)},
	"focus":         {needs("bid", aText)},
	"clear":         {needs("bid", aText)},
	"drag_and_drop": {needs("from_bid", aText), needs("to_bid", aText)},
	"upload_file":   {needs("bid", aText), needs("file", aList)},
	"get_text":      {may("bid", aText)},
	"screenshot":    {may("path", aText)},
	"handle_dialog": {needs("answer", aText), may("text", aText)},
	"new_tab":       nil,
	"tab_focus":     {needs("index", aNumber)},
	"tab_close":     nil,
}

// Names are all functions, for errors.
func Names() string { return strings.Join(slices.Sorted(maps.Keys(functions)), ", ") }

// usage is how a function is called.
func usage(name string) string {
	var list []string
	for _, p := range functions[name] {
		if p.optional {
			list = append(list, "["+p.name+"]")
		} else {
			list = append(list, p.name)
		}
	}
	return name + "(" + strings.Join(list, ", ") + ")"
}

// bind gives the arguments to the parameters.
func bind(signature []parameter, given []argument) (map[string]value, error) {
	args := map[string]value{}
	for i, a := range given {
		place := i
		if a.name != "" {
			place = slices.IndexFunc(signature, func(p parameter) bool { return p.name == a.name })
		}
		if place < 0 {
			return nil, fmt.Errorf("there is no parameter %s", a.name)
		}
		if place >= len(signature) {
			return nil, fmt.Errorf("there are too many arguments")
		}
		p := signature[place]
		if _, twice := args[p.name]; twice {
			return nil, fmt.Errorf("%s is given twice", p.name)
		}
		if p.optional && a.value.kind == wordKind { // None is as good as nothing
			continue
		}
		if err := p.check(a.value); err != nil {
			return nil, err
		}
		args[p.name] = a.value
	}
	for _, p := range signature {
		if _, ok := args[p.name]; !ok && !p.optional {
			return nil, fmt.Errorf("%s is missing", p.name)
		}
	}
	return args, nil
}

// check refuses a value of the wrong kind.
func (p parameter) check(v value) error {
	plain := func(v value) bool { return v.kind == textKind || v.kind == numberKind }
	switch p.want {
	case aNumber:
		if v.kind != numberKind {
			return fmt.Errorf("%s must be a number", p.name)
		}
	case aText:
		if !plain(v) {
			return fmt.Errorf("%s must be a quoted string", p.name)
		}
	case aList:
		if !plain(v) && v.kind != listKind || slices.ContainsFunc(v.list, func(item value) bool { return !plain(item) }) {
			return fmt.Errorf("%s must be a quoted string or a list of quoted strings", p.name)
		}
	}
	return nil
}

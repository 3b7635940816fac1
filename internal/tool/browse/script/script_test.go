package script

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// flat is a script as names with their arguments, for comparing.
func flat(steps []Step) (out []string) {
	for _, s := range steps {
		text := s.Name
		for _, p := range functions[s.Name] {
			if s.Has(p.name) {
				text += "|" + p.name + "=" + strings.Join(s.List(p.name), ",")
			}
		}
		out = append(out, text)
	}
	return out
}

func TestParse(t *testing.T) {
	for source, want := range map[string][]string{
		`goto('http://x.test/?a=1#b')`:                      {"goto|url=http://x.test/?a=1#b"},
		"go_back()\n\n# a remark\ngo_forward() # another\n": {"go_back", "go_forward"},
		"go_back(); go_forward();":                          {"go_back", "go_forward"},
		"fill('12', \"it's\")":                              {"fill|bid=12|value=it's"},
		`fill("a", '')`:                                     {"fill|bid=a|value="},
		"click(12)":                                         {"click|bid=12"},
		"click('12', button='right', modifiers=['Alt', 'Shift'],)": {"click|bid=12|button=right|modifiers=Alt,Shift"},
		"click(bid='12', modifiers=None)":                          {"click|bid=12"},
		"select_option('1', ('a', \"b\"))":                         {"select_option|bid=1|options=a,b"},
		"select_option('1', [])":                                   {"select_option|bid=1|options="},
		"scroll(-1.5, +2e2)":                                       {"scroll|delta_x=-1.5|delta_y=+2e2"},
		"noop()\r\nnoop( 1_000 )":                                  {"noop", "noop|wait_ms=1_000"},
		"fill(\n  '1',\n  '''a\n'b' \\'''' ,\n)":                   {"fill|bid=1|value=a\n'b' '"},
		`fill('1', r'a\nb')`:                                       {`fill|bid=1|value=a\nb`},
		`fill('1', 'a\n\t\\\'\"\x41\u00e4\U0001F600\q')`:           {"fill|bid=1|value=a\n\t\\'\"Aä😀\\q"},
		`fill('1', '\ud83d\ude00')`:                                {"fill|bid=1|value=😀"},
		"fill('1', 'two\nlines')":                                  {"fill|bid=1|value=two\nlines"},
	} {
		steps, err := Parse(source)
		if got := flat(steps); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nis %q, %v\nwant %q", source, got, err, want)
		}
	}
}

func TestParseSource(t *testing.T) {
	steps, err := Parse(" scroll( 1,2 ) # down\n\tclick('3')")
	if err != nil || steps[0].Source != "scroll( 1,2 )" || steps[1].Source != "click('3')" || steps[0].Number("delta_y") != 2 || steps[1].Text("bid") != "3" {
		t.Errorf("%+v, %v", steps, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for source, why := range map[string]string{
		"":                                     "no call",
		" # nothing\n;":                        "no call",
		"import os":                            "no function import",
		"__import__('os')":                     "no function __import__",
		"goto":                                 "parentheses",
		"goto(":                                "the end",
		"goto('x'":                             "comma or a closing parenthesis",
		"goto('x":                              "no closing '",
		"goto('''x''":                          "no closing '''",
		"goto(x)":                              "a quoted string",
		"goto('a' + 'b')":                      "comma or a closing parenthesis",
		"goto(f'x')":                           "a quoted string",
		"goto(goto('x'))":                      "a quoted string",
		"goto()":                               "url is missing",
		"goto('a', 'b')":                       "too many",
		"goto(url='a', url='b')":               "twice",
		"goto('a', url='b')":                   "twice",
		"goto(address='a')":                    "no parameter address",
		"click(bid='1', 'left')":               "without a name",
		"scroll('1', 2)":                       "delta_x must be a number",
		"scroll(1, --2)":                       "not a number",
		"scroll(1, 1e999)":                     "not a number",
		"goto(['a'])":                          "url must be a quoted string",
		"goto(None)":                           "url must be a quoted string",
		"select_option('1', [['a']])":          "options must be a quoted string or a list",
		"select_option('1', [[[[1]]]])":        "too deeply",
		"select_option('1', ['a' 'b'])":        "a comma or ]",
		"goto('a') goto('b')":                  "a new line was expected",
		"goto('a').x":                          "a new line was expected",
		"x = goto('a')":                        "no function x",
		`fill('1', '\x4')`:                     "hexadecimal",
		`fill('1', '\ud83d')`:                  "half a character",
		"fill('1', '\xff')":                    "UTF-8",
		"go_back()\ngo_back()\n!":              "line 3",
		strings.Repeat("noop()\n", maxSteps+1): "more than",
		strings.Repeat("#", maxLength+1):       "bytes",
	} {
		if steps, err := Parse(source); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%.100s\nis %q, %v\nwant an error with %q", source, flat(steps), err, why)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"goto('x')", "click(12, modifiers=['Shift'])", "fill('1', '''a\\u00e4''')", "scroll(-1, 2.5e3)\n# x\nnoop()", `fill("\ud83d\ude00", r'\')`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		steps, err := Parse(source)
		if err != nil {
			if len(steps) > 0 {
				t.Error("there are steps beside an error")
			}
			return
		}
		var again []string
		for _, s := range steps {
			if _, ok := functions[s.Name]; !ok {
				t.Errorf("%q is no function", s.Name)
			}
			for _, p := range functions[s.Name] {
				if !p.optional && !s.Has(p.name) {
					t.Errorf("%s has no %s", s.Source, p.name)
				}
				for _, text := range s.List(p.name) {
					if !utf8.ValidString(text) {
						t.Errorf("%q is not valid", text)
					}
				}
			}
			again = append(again, s.Source)
		}
		// What a step is written as means the same by itself.
		if second, err := Parse(strings.Join(again, "\n")); err != nil || !reflect.DeepEqual(flat(second), flat(steps)) {
			t.Errorf("%q is read as %q and then as %q, %v", source, flat(steps), flat(second), err)
		}
	})
}

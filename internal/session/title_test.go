package session_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"deckhand/internal/session"
)

func TestTitleFrom(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                    "",
		"  Fix it \n and more":                "Fix it",
		"one\ttwo   three":                    "one two three",
		" \n" + strings.Repeat("ü xx ", 9999): "ü xx ü xx ü xx ü xx ü xx ü xx ü xx ü xx ü xx ü…",
		strings.Repeat("word ", 20):           "word word word word word word word word word…",
		strings.Repeat("ü", 60):               strings.Repeat("ü", 49) + "…",
		strings.Repeat("x", 50):               strings.Repeat("x", 50),
		"say\x1b[1m hello\u202e\nto all":      "say hello",
		"Make a title, please, of this":       "Make a title, please, of this",
	} {
		if got := session.TitleFrom(in); got != want {
			t.Errorf("TitleFrom(%q) = %q, want %q", in, got, want)
		}
	}
}

// The first words of a message are the title of a conversation that has none.
func TestFirstWords(t *testing.T) {
	t.Parallel()
	hide := func(text string) (string, error) { return strings.ReplaceAll(text, "hunter2", "***"), nil }
	words := []session.Payload{session.Titled{Title: "use ***"}}
	for name, c := range map[string]struct {
		before []session.Payload
		text   string
		want   []session.Payload
	}{
		"a new one":        {nil, "use hunter2\nnow", words},
		"one without":      {[]session.Payload{session.Created{Owner: "ada"}}, "use hunter2", words},
		"nothing said":     {[]session.Payload{session.Created{Owner: "ada"}}, " \n", nil},
		"one with a title": {[]session.Payload{session.Created{Owner: "ada"}, session.Titled{Title: "first"}}, "use hunter2", nil},
		"one with a name":  {[]session.Payload{session.Created{Owner: "ada"}, session.Titled{Title: session.DefaultTitle(theID), ByUser: true}}, "use hunter2", nil},
	} {
		st := session.State{ID: theID}
		for i, p := range c.before {
			st = st.Apply(session.Event{Number: int64(i + 1), Payload: p})
		}
		if got, err := st.FirstWords(c.text, hide); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	broken := errors.New("the settings cannot be read")
	if got, err := (session.State{}).FirstWords("hello", func(string) (string, error) { return "", broken }); got != nil || err != broken {
		t.Errorf("%v %v", got, err)
	}
}

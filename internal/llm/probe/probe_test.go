package probe

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image/png"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/llm"
)

// model is one that behaves as its functions say, by what it is asked.
type model struct {
	greet, tools, images func(yield func(llm.Part, error) bool)
	asked                []llm.Request
}

func (m *model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	m.asked = append(m.asked, req)
	do := m.greet
	switch {
	case len(req.Tools) > 0:
		do = m.tools
	case len(req.Messages[0].Images) > 0:
		do = m.images
	}
	return func(yield func(llm.Part, error) bool) {
		if do == nil { // never answers
			<-ctx.Done()
			yield(llm.Part{}, ctx.Err())
			return
		}
		do(yield)
	}
}

type answer = func(yield func(llm.Part, error) bool)

func says(texts ...string) answer {
	return func(yield func(llm.Part, error) bool) {
		for _, s := range texts {
			if !yield(llm.Part{Text: s}, nil) {
				return
			}
		}
		yield(llm.Part{Done: &llm.Done{}}, nil)
	}
}

func calls(args ...string) answer {
	return func(yield func(llm.Part, error) bool) {
		for _, a := range args {
			if !yield(llm.Part{Call: &llm.Call{ID: a, Name: "note", Args: json.RawMessage(a)}}, nil) {
				return
			}
		}
		yield(llm.Part{Done: &llm.Done{}}, nil)
	}
}

func fails(class llm.Class, message string) answer {
	return func(yield func(llm.Part, error) bool) { yield(llm.Part{}, &llm.Error{Class: class, Message: message}) }
}

const apple, pear = `{"word":"apple"}`, `{"word":"pear"}`

// marks writes a report as one word per check: + for yes, - for no, ? for unknown.
func marks(r Report) string {
	var b strings.Builder
	for _, c := range r.Checks {
		mark := "?"
		if c.OK != nil {
			mark = map[bool]string{true: "+", false: "-"}[*c.OK]
		}
		b.WriteString(mark + c.Name + " ")
	}
	return strings.TrimSpace(b.String())
}

func TestReports(t *testing.T) {
	full := llm.Info{Window: 200_000, Price: llm.Price{Input: 3, Output: 15}, Priced: true, Tools: true, Images: true}
	counts := says("one ", "two ", "three")
	for name, c := range map[string]struct {
		m    model
		info llm.Info
		want string
		ok   bool
		says []string
	}{
		"a good model": {model{greet: counts, tools: calls(apple, pear), images: says("Red.")}, full,
			"+reachable +streaming +tools +images +context +price", true, []string{"3 pieces", "several at once", "200000 tokens", "$3 input, $15 output"}},
		"one call at a time": {model{greet: counts, tools: calls(apple), images: says("red")}, full,
			"+reachable +streaming +tools +images +context +price", true, []string{"one at a time"}},
		"a wrong key": {model{greet: fails(llm.ClassAuth, "invalid x-api-key sk-secret")}, full,
			"-reachable ?streaming ?tools ?images +context +price", false, []string{"API key is missing or invalid", "invalid x-api-key ***", "Not tested"}},
		"a wrong name": {model{greet: fails(llm.ClassRequest, "no such model")}, full,
			"-reachable ?streaming ?tools ?images +context +price", false, []string{"check the model name"}},
		"no connection": {model{greet: fails(llm.ClassNetwork, "connection refused")}, full,
			"-reachable ?streaming ?tools ?images +context +price", false, []string{"Check the base URL"}},
		"in one piece": {model{greet: says("one two"), tools: calls(apple, pear), images: says("red")}, full,
			"+reachable -streaming +tools +images +context +price", true, []string{"was not streamed"}},
		"nothing said": {model{greet: says(), tools: calls(apple, pear), images: says()}, full,
			"+reachable ?streaming +tools ?images +context +price", true, nil},
		"no tools": {model{greet: counts, tools: says("I would call note."), images: says("red")}, full,
			"+reachable +streaming -tools +images +context +price", false, []string{"tools: text"}},
		"tools refused": {model{greet: counts, tools: fails(llm.ClassRequest, "tools are not supported"), images: says("red")}, full,
			"+reachable +streaming -tools +images +context +price", false, []string{"tools are not supported", "tools: text"}},
		"bad arguments": {model{greet: counts, tools: calls(`"apple"`), images: says("red")}, full,
			"+reachable +streaming -tools +images +context +price", false, []string{"invalid arguments"}},
		"slowed down": {model{greet: counts, tools: fails(llm.ClassRate, "later"), images: fails(llm.ClassOverload, "busy")}, full,
			"+reachable +streaming ?tools ?images +context +price", true, []string{"Unknown: "}},
		"colour-blind": {model{greet: counts, tools: calls(apple, pear), images: says("Blue")}, full,
			"+reachable +streaming +tools -images +context +price", true, []string{"did not recognise"}},
		"images refused": {model{greet: counts, tools: calls(apple, pear), images: fails(llm.ClassRequest, "no vision")}, full,
			"+reachable +streaming +tools -images +context +price", true, []string{"does not support images"}},
		"nothing known": {model{greet: counts, tools: calls(apple, pear)}, llm.Info{Tools: true},
			"+reachable +streaming +tools ?images ?context ?price", true, []string{"images: true", "a budget cannot be used"}},
		"tools as text": {model{greet: counts, tools: says("no")}, llm.Info{Thinks: true},
			"+reachable +streaming -tools ?images ?context ?price", false, nil},
	} {
		r := Run(context.Background(), &c.m, c.info, Options{Redact: func(s string) string { return strings.ReplaceAll(s, "sk-secret", "***") }})
		if marks(r) != c.want || r.OK != c.ok {
			t.Errorf("%s: %s, %t; want %s, %t\n%+v", name, marks(r), r.OK, c.want, c.ok, r.Checks)
		}
		all := ""
		for _, k := range r.Checks {
			all += k.Message + "\n"
		}
		for _, s := range c.says {
			if !strings.Contains(all, s) {
				t.Errorf("%s: does not say %q:\n%s", name, s, all)
			}
		}
		for _, req := range c.m.asked {
			if req.MaxOutput < 100 || req.MaxOutput > 2000 || !c.info.Thinks && req.MaxOutput > 300 {
				t.Errorf("%s: asked for %d tokens", name, req.MaxOutput)
			}
		}
		if c.want[0] == '-' && (len(c.m.asked) != 1 || r.Class == "") {
			t.Errorf("%s: asked %d times, class %q", name, len(c.m.asked), r.Class)
		}
	}
}

// A model that never answers does not block the caller.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		r := Run(context.Background(), &model{}, llm.Info{Tools: true, Images: true}, Options{})
		if took := time.Since(begun); took != 30*time.Second {
			t.Errorf("took %s", took)
		}
		if r.OK || r.Class != llm.ClassNetwork || !strings.Contains(r.Checks[0].Message, "no response within 30s") {
			t.Errorf("%+v", r)
		}
		begun = time.Now()
		r = Run(context.Background(), &model{greet: says("a", "b")}, llm.Info{Tools: true, Images: true}, Options{Timeout: time.Second})
		if took := time.Since(begun); took != 2*time.Second || marks(r) != "+reachable +streaming ?tools ?images ?context ?price" {
			t.Errorf("took %s: %s", took, marks(r))
		}
	})
}

func TestFirstToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Run(context.Background(), &model{greet: func(yield func(llm.Part, error) bool) {
			time.Sleep(250 * time.Millisecond)
			says("a", "b")(yield)
		}, tools: calls(apple)}, llm.Info{Tools: true}, Options{})
		if r.FirstToken != 250*time.Millisecond || !strings.Contains(r.Checks[0].Message, "after 250ms") {
			t.Errorf("%s: %s", r.FirstToken, r.Checks[0].Message)
		}
	})
}

func TestOtherErrors(t *testing.T) {
	r := Run(context.Background(), &model{greet: func(yield func(llm.Part, error) bool) { yield(llm.Part{}, errors.New("odd")) }}, llm.Info{}, Options{})
	if r.OK || r.Class != "" || !strings.Contains(r.Checks[0].Message, "odd") {
		t.Errorf("%+v", r)
	}
}

// The names are part of the interface.
func TestNames(t *testing.T) {
	r := Run(context.Background(), &model{greet: says("a"), tools: says("a"), images: says("a")}, llm.Info{Images: true}, Options{})
	var names []string
	for _, c := range r.Checks {
		names = append(names, c.Name)
	}
	if !slices.Equal(names, []string{"reachable", "streaming", "tools", "images", "context", "price"}) {
		t.Errorf("%v", names)
	}
}

func TestPicture(t *testing.T) {
	_, content, ok := llm.SplitDataURL(picture())
	b, err := base64.StdEncoding.DecodeString(content)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for x := range img.Bounds().Dx() {
		for y := range img.Bounds().Dy() {
			if r, g, b, _ := img.At(x, y).RGBA(); r != 0xffff || g != 0 || b != 0 {
				t.Fatalf("the pixel at %d,%d is not red", x, y)
			}
		}
	}
}

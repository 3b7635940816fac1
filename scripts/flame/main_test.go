package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

const traces = `File: deckhand
Type: cpu
Duration: 2s, Total samples = 40ms
-----------+-------------------------------------------------------
      10ms   syscall.Syscall
             deckhand/internal/live.(*Hub).Write[...] (inline)
             main.main
-----------+-------------------------------------------------------
   request:   one
      30ms   runtime.mallocgc
             main.main
-----------+-------------------------------------------------------
`

func TestStacksAreAddedUp(t *testing.T) {
	t.Parallel()
	root, err := read(strings.NewReader(traces))
	if err != nil {
		t.Fatal(err)
	}
	start := root.calls["main.main"]
	if root.value != 40*time.Millisecond || start == nil || start.value != 40*time.Millisecond || len(start.calls) != 2 {
		t.Fatalf("%+v: wanted 40 ms in main, which calls two", root)
	}
	svg := string(fit(root, "a <title>"))
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
	}
	for _, want := range []string{"a &lt;title&gt;", "runtime.mallocgc: 75.0 %", `class="own" x="0.0"`, ">live.(*Hub).Write[...]<", `class="sys"`} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s is missing in %s", want, svg)
		}
	}
}

func TestPictureStaysSmall(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&b, "-----------+---\n 10ms deckhand/a/function/with/a/long/name/of/number%d\n main.main\n", i)
	}
	root, err := read(strings.NewReader(b.String()))
	if err != nil || len(root.calls["main.main"].calls) != 4000 {
		t.Fatal(err)
	}
	if n := len(fit(root, "many")); n > most {
		t.Errorf("%d bytes, wanted at most %d", n, most)
	}
}

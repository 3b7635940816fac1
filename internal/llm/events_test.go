package llm_test

import (
	"bufio"
	"errors"
	"reflect"
	"strings"
	"testing"

	"deckhand/internal/llm"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, stream string
		want         []string // type and data
		err          error
	}{
		{"framing", "data: {}\n\n", []string{"|{}\n"}, nil},
		{"no space, CRLF, comments, unknown fields", ": hi\r\nid: 7\r\nevent:a\r\ndata:1\r\n\r\n", []string{"a|1\n"}, nil},
		{"data in several lines", "data: 1\ndata: 2\ndata:  3\n\n", []string{"|1\n2\n 3\n"}, nil},
		{"nothing between events", "\n\n\ndata: 1\n\n\n\ndata: 2\n\n", []string{"|1\n", "|2\n"}, nil},
		{"a type belongs to one event", "event: a\n\ndata: 1\n\n", []string{"a|", "|1\n"}, nil},
		{"cut in the middle", "data: 1\n\ndata: 2\n", []string{"|1\n"}, nil},
		{"empty", "", nil, nil},
		{"too long", "data: 1\n\ndata: " + strings.Repeat("x", 32<<20), []string{"|1\n"}, bufio.ErrTooLong},
		{"too long in many lines", "data: 1\n\n" + strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 33), []string{"|1\n"}, bufio.ErrTooLong},
	} {
		var got []llm.Event
		var failed error
		for e, err := range llm.Events(strings.NewReader(c.stream)) {
			if err != nil {
				failed = err
				break
			}
			got = append(got, e)
		}
		var said []string // after all were read: an event keeps its data
		for _, e := range got {
			said = append(said, e.Type+"|"+string(e.Data))
		}
		if !reflect.DeepEqual(said, c.want) || !errors.Is(failed, c.err) {
			t.Errorf("%s: got %q, %v", c.name, said, failed)
		}
	}
}

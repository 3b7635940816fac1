package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestReadFrame(t *testing.T) {
	stream := "retry: 1000\n\n: ping\n\nid: 7\ndata: {\"id\":7}\n\nevent: delta\ndata: {\"call\":\"m\",\ndata: \"text\":\"x\"}\n\nevent: end\ndata: {}\n\n"
	r := bufio.NewReader(strings.NewReader(stream))
	for _, want := range []frame{
		{id: 7, data: []byte(`{"id":7}`)}, {event: "delta", data: []byte("{\"call\":\"m\",\n\"text\":\"x\"}")}, {event: "end", data: []byte("{}")},
	} {
		got, err := readFrame(r)
		if err != nil || got.id != want.id || got.event != want.event || !bytes.Equal(got.data, want.data) {
			t.Fatalf("%+v %v, want %+v", got, err, want)
		}
	}
	if _, err := readFrame(r); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("at the end: %v", err)
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("id: 1\ndata: {}\n\n"))
	f.Add([]byte("event: delta\r\ndata\r\n\r\n"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		for range len(b) + 1 {
			fr, err := readFrame(r)
			if err != nil {
				return
			}
			_, _ = fr.item()
		}
	})
}

// A connection that is lost again and again costs nothing but time: each event comes once.
func TestFollowResumes(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Last-Event-ID"))
		switch n := len(asked); n {
		case 2:
			http.Error(w, "down", http.StatusServiceUnavailable)
		case 4:
			fmt.Fprint(w, "id: 3\ndata: {\"id\":3}\n\nevent: end\ndata: {}\n\n")
		default: // two events, the first of which is a repetition, and a torn one
			first := map[int]int{1: 0, 3: 1}[n]
			fmt.Fprintf(w, "id: %d\ndata: {\"id\":%d}\n\nid: %d\ndata: {\"id\":%d}\n\nid: 9\nda", first, first, first+1, first+1)
		}
	}))
	defer server.Close()
	c := New(server.URL, "k")
	defer c.HTTP.CloseIdleConnections()
	var got []int64
	for it, err := range c.Follow(context.Background(), "x", 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, it.ID)
	}
	// Number 0 is no stored event, so it passes; 1, 2 and 3 come once each.
	if fmt.Sprint(got) != "[0 1 2 3]" || fmt.Sprint(asked) != "[0 1 1 2]" {
		t.Errorf("got %v, asked from %v", got, asked)
	}
}

func TestFollowEndsOnRefusal(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"detail":"Unauthorized"}`)
	}))
	defer server.Close()
	c := New(server.URL, "k")
	defer c.HTTP.CloseIdleConnections()
	n := 0
	for _, err := range c.Follow(context.Background(), "x", 0) {
		n++
		var e *Error
		if !errors.As(err, &e) || e.Status != http.StatusUnauthorized || e.Message != "Unauthorized" {
			t.Errorf("%v", err)
		}
	}
	if n != 1 {
		t.Errorf("%d items", n)
	}
}

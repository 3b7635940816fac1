package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A connection that is lost costs nothing but a new snapshot.
func TestFollowListBeginsAnew(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/conversations/stream" || r.Header.Get("X-Session-API-Key") != "k" {
			t.Errorf("asked for %s", r.URL)
		}
		switch asked++; asked {
		case 1:
			fmt.Fprint(w, "retry: 1000\n\nevent: snapshot\ndata: {\"results\":[]}\n\nevent: conversation\ndata: {\"conversation_id\":\"a\"}\n\nevent: conver")
		case 2:
			http.Error(w, "down", http.StatusServiceUnavailable)
		default:
			fmt.Fprint(w, "event: snapshot\ndata: {\"results\":[{\"conversation_id\":\"a\"}]}\n\n: ping\n\nevent: novelty\ndata: {}\n\nevent: deleted\ndata: {\"conversation_id\":\"a\"}\n\n")
		}
	}))
	defer server.Close()
	c := New(server.URL, "k")
	defer c.HTTP.CloseIdleConnections()
	var got []string
	for it, err := range c.FollowList(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case it.Snapshot != nil:
			got = append(got, fmt.Sprint("snapshot ", len(it.Snapshot)))
		case it.Conversation != nil:
			got = append(got, "conversation "+it.Conversation.ConversationID)
		default:
			got = append(got, "deleted "+it.Deleted)
		}
		if it.Deleted != "" {
			break
		}
	}
	if fmt.Sprint(got) != "[snapshot 0 conversation a snapshot 1 deleted a]" || asked != 3 {
		t.Errorf("%v in %d attempts", got, asked)
	}
}

func TestFollowListEndsOnRefusal(t *testing.T) {
	status := http.StatusUnauthorized
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, "event: snapshot\ndata: what\n\n")
	}))
	defer server.Close()
	c := New(server.URL, "k")
	defer c.HTTP.CloseIdleConnections()
	for _, status = range []int{http.StatusUnauthorized, http.StatusOK} { // refused, or not to be understood
		n := 0
		for _, err := range c.FollowList(context.Background()) {
			n++
			var e *Error
			if errors.As(err, &e) != (status != http.StatusOK) || err == nil {
				t.Errorf("%d: %v", status, err)
			}
		}
		if n != 1 {
			t.Errorf("%d: %d items", status, n)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, err := range c.FollowList(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
}

func FuzzListItem(f *testing.F) {
	f.Add([]byte("event: snapshot\ndata: {\"results\":[{\"conversation_id\":\"a\"}]}\n\n"))
	f.Add([]byte("event: conversation\ndata: {}\n\nevent: deleted\ndata: null\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		for range len(b) + 1 {
			fr, err := readFrame(r)
			if err != nil {
				return
			}
			it, known, err := fr.listItem()
			if err == nil && known && it.Snapshot == nil && it.Conversation == nil && it.Deleted == "" && fr.event != "deleted" && fr.event != "snapshot" {
				t.Errorf("%q gave nothing", b)
			}
		}
	})
}

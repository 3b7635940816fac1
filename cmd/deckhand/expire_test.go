package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A conversation is deleted with its workspace some time after its last activity.
func TestOldConversationIsDeleted(t *testing.T) {
	t.Parallel()
	b := serve(t, "", "--delete-after", "10s")
	b.demo("scripted/demo")
	if code, text, _ := b.raw("GET", "/api/me", ""); code != http.StatusOK || !strings.Contains(text, `"delete_conversations_after":10`) {
		t.Errorf("%d %s", code, text)
	}
	id := b.create("$ echo made | tee it")
	b.said(id, 0, "made")
	b.until("the conversation is deleted", func() bool {
		code, _, _ := b.raw("GET", "/api/conversations/"+id, "")
		return code == http.StatusNotFound
	})
	b.until("its workspace is removed", func() bool {
		_, err := os.Stat(filepath.Join(b.dir, "boxes", id))
		return errors.Is(err, os.ErrNotExist)
	})
}

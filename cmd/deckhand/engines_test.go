package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"deckhand/api/health"
	"deckhand/internal/sandbox/docker/dockertest"
)

// A server with two engines gives each a conversation. When one engine stops, its conversation fails with
// the address of the engine, the other one goes on, and new conversations go to the engine that is left.
func TestTwoEngines(t *testing.T) {
	t.Parallel()
	first, second := dockertest.Start(t), dockertest.Start(t)
	image := first.BusyboxImage(t)
	second.BusyboxImage(t)
	b := serve(t, "", append(withSandbox(t, "docker"), "--docker-host", first.Host, "--docker-host", second.Host, "--sandbox-image", image, "--sandbox-pull", "never")...)
	b.demo("scripted/demo")
	engines := func() map[string]health.HealthPart {
		t.Helper()
		code, text, _ := b.raw("GET", "/api/admin/health", "")
		var h health.ServerHealth
		if err := json.Unmarshal([]byte(text), &h); code != http.StatusOK || err != nil {
			t.Fatalf("%d %s: %v", code, text, err)
		}
		found := map[string]health.HealthPart{}
		for _, p := range h.Parts {
			if p.ID == "sandbox" {
				found[p.Name] = p
			}
		}
		return found
	}
	on := map[string]string{} // conversation by engine
	for i := range 2 {
		id := b.create(fmt.Sprintf("$ echo conversation %d > mine; cat mine", i))
		b.said(id, 0, fmt.Sprintf("conversation %d", i))
		for _, o := range []*dockertest.Own{first, second} {
			if o.Sandboxes(t)[id] {
				on[o.Host] = id
			}
		}
	}
	if len(on) != 2 {
		t.Fatalf("not one conversation on each engine: %v", on)
	}
	if parts := engines(); len(parts) != 2 || parts[first.Host].Status != "ok" || !strings.HasPrefix(parts[first.Host].Version, "Docker ") || parts[second.Host].Status != "ok" {
		t.Errorf("the health page shows %+v", parts)
	}

	second.Halt(t)
	gone, here := on[second.Host], on[first.Host]
	b.post("/api/conversations/"+here+"/message", `{"message":"$ cat mine; echo still here"}`)
	b.said(here, 0, "still here")
	id := b.create("$ echo a new one")
	b.said(id, 0, "a new one")
	if !first.Sandboxes(t)[id] {
		t.Error("the new conversation is not on the engine that works")
	}
	if parts := engines(); parts[first.Host].Status != "ok" || parts[second.Host].Status != "warning" {
		t.Errorf("after an engine stopped, the health page shows %+v", parts)
	}

	second.Resume(t)
	b.post("/api/conversations/"+gone+"/message", `{"message":"$ cat mine; echo back again"}`)
	if said := b.said(gone, 0, "back again"); !strings.Contains(said, "conversation") {
		t.Errorf("after its engine is back: %s", said)
	}
}

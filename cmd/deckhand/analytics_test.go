package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// effectOfConsent: the numbers of those who consent reach the operator's
// collector, and nothing that tells whose they are; those of others do not.
func effectOfConsent(t *testing.T, _ *lab) {
	sent := make(chan []byte, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		sent <- b
	}))
	t.Cleanup(collector.Close)
	l := newLab(t, "", "--otlp-endpoint", collector.URL)
	silent := l.person(t, "silent", steps(use("think", map[string]any{"thought": "Hm."})), `"user_consents_to_analytics":false`)
	silent.follow(silent.begin("Go."), 0, agentIs("awaiting_user_input"))
	open := l.person(t, "outspoken", steps(use("task_tracker", map[string]any{"command": "view"})), `"user_consents_to_analytics":true`)
	open.follow(open.begin("Go."), 0, agentIs("awaiting_user_input"))
	var all []byte
	for !bytes.Contains(all, []byte("tool.task_tracker")) { // they are sent every few seconds, in order
		select {
		case b := <-sent:
			all = append(all, b...)
		case <-t.Context().Done():
			t.Fatal("the numbers of a user who consents are not sent")
		}
	}
	if !bytes.Contains(all, []byte("model_calls")) {
		t.Error("the number of model calls is missing")
	}
	if bytes.Contains(all, []byte("tool.think")) {
		t.Error("the numbers of a user who does not consent are sent")
	}
	for _, private := range []string{"outspoken", "silent"} {
		if bytes.Contains(all, []byte(private)) {
			t.Errorf("%q is in what is sent", private)
		}
	}
}

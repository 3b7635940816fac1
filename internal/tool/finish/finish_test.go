package finish_test

import (
	"encoding/json"
	"testing"

	"deckhand/internal/tool"
	"deckhand/internal/tool/finish"
	"deckhand/internal/tool/tooltest"
)

func TestSpec(t *testing.T) {
	tooltest.Spec(t, finish.Tool{}.Spec(), []string{`{"message":"x"}`}, []string{`{}`, `{"message":1}`})
	if s := (finish.Tool{}).Spec(); !s.Harmless || s.Name != "finish" {
		t.Errorf("got %+v", s)
	}
}

func TestFinish(t *testing.T) {
	for args, want := range map[string]string{`{"message":"All tests pass."}`: "All tests pass.", `{"message":""}`: ""} {
		r, err := finish.Tool{}.Run(t.Context(), nil, tool.Call{Args: json.RawMessage(args)})
		if err != nil || r.Failed || !r.Ends || r.Text != want {
			t.Errorf("%s: got %+v, %v", args, r, err)
		}
	}
	for _, args := range []string{`{}`, `{"message":7}`, ``} {
		r, err := finish.Tool{}.Run(t.Context(), nil, tool.Call{Args: json.RawMessage(args)})
		if err != nil || !r.Failed || r.Ends || r.Text == "" {
			t.Errorf("%s: got %+v, %v", args, r, err)
		}
	}
}

package think_test

import (
	"encoding/json"
	"testing"

	"deckhand/internal/tool"
	"deckhand/internal/tool/think"
	"deckhand/internal/tool/tooltest"
)

func TestSpec(t *testing.T) {
	tooltest.Spec(t, think.Tool{}.Spec(), []string{`{"thought":"x"}`}, []string{`{}`, `{"thought":1}`})
	if s := (think.Tool{}).Spec(); !s.Harmless || s.Name != "think" {
		t.Errorf("got %+v", s)
	}
}

func TestThink(t *testing.T) {
	for args, failed := range map[string]bool{`{"thought":"the lock is taken twice"}`: false, `{"thought":""}`: false, `{}`: true, `{"thought":[]}`: true, `x`: true} {
		r, err := think.Tool{}.Run(t.Context(), nil, tool.Call{Args: json.RawMessage(args)})
		if err != nil || r.Failed != failed || r.Text == "" || r.Ends {
			t.Errorf("%s: got %+v, %v", args, r, err)
		}
	}
}

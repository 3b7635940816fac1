package health

import (
	"fmt"
	"testing"

	"deckhand/internal/sandbox"
)

func TestEngineParts(t *testing.T) {
	t.Parallel()
	one, other := sandbox.Engine{Address: "unix:///one.sock"}, sandbox.Engine{Address: "tcp://other:2376", Error: "no answer"}
	gone := one
	gone.Error = "no answer"
	for _, c := range []struct {
		engines []sandbox.Engine
		want    string
	}{
		{[]sandbox.Engine{one, one}, "ok ok"},
		{[]sandbox.Engine{one, other}, "ok warning"},
		{[]sandbox.Engine{gone, other}, "failed failed"},
	} {
		got := ""
		for i, p := range engineParts(c.engines) {
			got += fmt.Sprint(" ", p.Status)
			if p.Name != c.engines[i].Address || p.Detail != c.engines[i].Error {
				t.Errorf("engine %d is described as %+v", i, p)
			}
		}
		if got != " "+c.want {
			t.Errorf("got%s, want %s", got, c.want)
		}
	}
}

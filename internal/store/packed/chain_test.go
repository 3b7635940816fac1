package packed

import "testing"

// What a mark costs: one for each event of a batch.
func BenchmarkMark(b *testing.B) {
	var c Chain
	c.Use([32]byte{1}, 0)
	var m Mark
	body := []byte(`{"id":"n","message":"A line of what happened."}`)
	b.ReportAllocs()
	for b.Loop() {
		m = c.Next(m, 1, "noted", body)
	}
}

// Off, a chain writes nothing.
func TestNoChain(t *testing.T) {
	t.Parallel()
	var c Chain
	row := Append(nil, "noted", 0, []byte("{}"))
	if m, known := c.Known("id", 7); !known || m != (Mark{}) || len(c.Mark(row, m)) != len(row) {
		t.Error("a chain without a key makes marks")
	}
	if _, marked := MarkOf(row); marked {
		t.Error("a row without a mark has one")
	}
	c.Use([32]byte{1}, 0)
	m := c.Next(c.Start("id", 0), 0, "noted", []byte("{}"))
	marked := c.Mark(row, m)
	if got, ok := MarkOf(Compress(marked)); !ok || got != m {
		t.Errorf("%v %v", got, ok)
	}
	if events, err := Events(marked); err != nil || len(events) != 1 {
		t.Errorf("%v %v", events, err)
	}
	if _, err := Events(marked[:len(marked)-1]); err == nil {
		t.Error("a mark that is cut off is none")
	}
}

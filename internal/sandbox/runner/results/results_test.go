package results

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Store) is(t *testing.T, id string, again bool, want State, result string) <-chan struct{} {
	t.Helper()
	state, got, done, err := s.Begin(id, again)
	if err != nil || state != want || string(got) != result {
		t.Errorf("%s is %v with %s and %v, wanted %v with %s", id, state, got, err, want, result)
	}
	return done
}

func TestOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	s := open(t, dir)
	s.is(t, "a", false, New, "")
	done := s.is(t, "a", true, Running, "")
	select {
	case <-done:
		t.Error("it is done before it is")
	default:
	}
	if _, err := s.Result("a"); err == nil {
		t.Error("it has a result before it is done")
	}
	if err := s.Ack("a"); err != nil {
		t.Error(err)
	}
	s.is(t, "a", false, Running, "")
	if err := s.Finish("a", map[string]int{"x": 1}); err != nil {
		t.Fatal(err)
	}
	<-done
	s.is(t, "a", false, Done, `{"x":1}`)
	if b, err := s.Result("a"); err != nil || string(b) != `{"x":1}` {
		t.Errorf("its result is %s, %v", b, err)
	}
	s.is(t, "a/../b", true, New, "") // any id is fine, and Again means nothing here
	for range 2 {
		if err := s.Ack("a"); err != nil {
			t.Error(err)
		}
	}
	s.is(t, "a", false, New, "")
}

func TestAfterADeath(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.is(t, "done", false, New, "")
	if err := s.Finish("done", "x"); err != nil {
		t.Fatal(err)
	}
	s.is(t, "begun", false, New, "")
	s.is(t, "torn", false, New, "")
	if err := os.Truncate(s.path("torn"), 3); err != nil {
		t.Fatal(err)
	}
	next := open(t, dir)
	next.is(t, "done", false, Done, `"x"`)
	next.is(t, "begun", false, Lost, "")
	next.is(t, "torn", false, Lost, "")
	next.is(t, "new", true, New, "")
	if err := next.Ack("begun"); err != nil {
		t.Fatal(err)
	}
	next.is(t, "begun", false, New, "")
}

// When the machine was restarted, what is not known may have been done.
func TestAfterARestart(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "boot"), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	s.is(t, "sent before", true, Lost, "")
	s.is(t, "new", false, New, "")
}

func TestFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	s := open(t, dir)
	s.is(t, "a", false, New, "")
	if err := os.RemoveAll(dir); err != nil { // as good as full
		t.Fatal(err)
	}
	if _, _, _, err := s.Begin("b", false); err == nil {
		t.Error("it began what it cannot remember")
	}
	if err := s.Finish("a", "x"); err == nil {
		t.Error("nobody was told that it could not be stored")
	}
	// It was done all the same, and this runner knows.
	s.is(t, "a", true, Done, `"x"`)
	if b, err := s.Result("a"); err != nil || string(b) != `"x"` {
		t.Errorf("its result is %s, %v", b, err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.is(t, "b", true, New, "") // which could not be begun before
	if err := s.Ack("a"); err != nil {
		t.Error(err)
	}
	s.is(t, "a", false, New, "")
}

func TestOneOfManyBegins(t *testing.T) {
	s := open(t, t.TempDir())
	var all sync.WaitGroup
	began := make(chan State, 20)
	for range 20 {
		all.Go(func() {
			state, _, done, err := s.Begin("a", false)
			if err != nil {
				t.Error(err)
			}
			began <- state
			if state == New {
				_ = s.Finish("a", 1)
			}
			if done != nil {
				<-done
			}
		})
	}
	all.Wait()
	close(began)
	count := 0
	for state := range began {
		if state == New {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d began it", count)
	}
}

package results

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err == nil {
		err = s.SetKey(bytes.Repeat([]byte("k"), KeySize))
	}
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
	s.is(t, "a/../b", false, New, "") // any id is fine
	// The folder is new, so what was done before it was made is not known.
	s.is(t, "before", true, Lost, "")
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
	s.is(t, "gone", false, New, "")
	if err := errors.Join(s.Finish("gone", "y"), s.Ack("gone")); err != nil {
		t.Fatal(err)
	}
	s.is(t, "torn", false, New, "")
	if err := s.Finish("torn", "z"); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(s.path(), s.size-3); err != nil { // it died while it wrote this
		t.Fatal(err)
	}
	next := open(t, dir)
	next.is(t, "done", false, Done, `"x"`)
	next.is(t, "begun", false, Lost, "")
	next.is(t, "torn", false, Lost, "")
	next.is(t, "gone", false, New, "")
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
	dir := t.TempDir()
	s := open(t, dir)
	s.is(t, "a", false, New, "")
	file := s.file
	closed, err := os.Open(os.DevNull) // as good as full: it takes nothing
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	s.file = closed
	if _, _, _, err := s.Begin("b", false); err == nil {
		t.Error("it began what it cannot remember")
	}
	if err := s.Finish("a", "x"); err == nil {
		t.Error("the failed write was not reported")
	}
	// It was done all the same, and this runner knows.
	s.is(t, "a", true, Done, `"x"`)
	if b, err := s.Result("a"); err != nil || string(b) != `"x"` {
		t.Errorf("its result is %s, %v", b, err)
	}
	s.file = file
	s.is(t, "b", false, New, "") // which could not be begun before
	open(t, dir).is(t, "a", false, Lost, "")
	if err := s.Ack("a"); err != nil {
		t.Error(err)
	}
	s.is(t, "a", false, New, "")
}

// The journal does not grow without bound.
func TestCompact(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.is(t, "kept", false, New, "")
	if err := s.Finish("kept", "result"); err != nil {
		t.Fatal(err)
	}
	s.is(t, "running", false, New, "")
	large := strings.Repeat("x", 100_000)
	for i := range 50 {
		id := strconv.Itoa(i)
		s.is(t, id, false, New, "")
		if err := errors.Join(s.Finish(id, large), s.Ack(id)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(s.path())
		if err != nil || info.Size() > 2*maxDead || info.Size() != max(s.size, kept) {
			t.Fatalf("after %d the journal has %d bytes, it should be %d; %v", i, info.Size(), max(s.size, kept), err)
		}
	}
	s.is(t, "kept", false, Done, `"result"`)
	s.is(t, "running", false, Running, "")
	if err := s.Finish("running", 1); err != nil {
		t.Fatal(err)
	}
	s.is(t, "running", false, Done, "1")
	next := open(t, dir)
	if next.size > 1000 {
		t.Errorf("a new runner begins with %d bytes", next.size)
	}
	next.is(t, "kept", false, Done, `"result"`)
	next.is(t, "running", false, Done, "1")
}

// Lines that make no sense cost what they tell and nothing else.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	s.is(t, "a", false, New, "")
	if err := s.Finish("a", 1); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(s.path())
	if err != nil {
		t.Fatal(err)
	}
	b = append([]byte("nonsense\n\x00\x00\n"), b...)
	if err := os.WriteFile(s.path(), append(b, "{\"id\":\"b\",\"do"...), 0o600); err != nil {
		t.Fatal(err)
	}
	next := open(t, dir)
	next.is(t, "a", false, Done, "1")
	next.is(t, "b", false, New, "")
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

const canary = "canary-5f0c2b7d9e"

// hidden fails if a file of the folder shows the canary.
func hidden(t *testing.T, when, dir string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(filepath.Join(dir, f.Name())); err != nil || bytes.Contains(b, []byte(canary)) {
			t.Errorf("%s, %s holds what was printed: %s %v", when, f.Name(), b, err)
		}
	}
}

// What a command printed is never readable on disk, and gone when it was acknowledged.
func TestResultsAreSealedAndRemoved(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for _, id := range []string{"a", "b"} {
		s.is(t, id, false, New, "")
		if err := s.Finish(id, canary); err != nil {
			t.Fatal(err)
		}
	}
	hidden(t, "pending", dir)
	before, err := os.ReadFile(s.path())
	if err != nil {
		t.Fatal(err)
	}
	next := open(t, dir) // the next runner is given the same key
	next.is(t, "a", false, Done, `"`+canary+`"`)
	hidden(t, "after a restart", dir)
	if err := next.Ack("a"); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(next.path())
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(before) {
		if bytes.Contains(line, []byte(`"id":"a"`)) && bytes.Contains(after, line) {
			t.Errorf("the result is still there: %s", after)
		}
	}
	next = open(t, dir)
	next.is(t, "b", false, Done, `"`+canary+`"`)
	if err := next.Ack("b"); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(next.path()); err != nil || len(bytes.Trim(b, " \n\x00")) != 0 {
		t.Errorf("nothing waits, and the journal holds %q %v", b, err)
	}
	next.is(t, "b", false, New, "")
	if err := next.Finish("b", canary); err != nil {
		t.Fatal(err)
	}
	// Without the key its result is unknown, and it is not done again.
	other, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	other.is(t, "b", false, Lost, "")
	if err := other.SetKey([]byte("short")); err == nil {
		t.Error("it takes any key")
	}
}

// A journal of an older version is understood, and sealed as soon as there is a key.
func TestResultsOfAnOlderRunner(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	old := `{"id":"a"}` + "\n" + `{"id":"a","done":true,"result":"` + canary + `"}` + "\n" + `{"id":"b"}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, "journal"), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	hidden(t, "with a key", dir)
	s.is(t, "a", false, Done, `"`+canary+`"`)
	s.is(t, "b", false, Lost, "")
	open(t, dir).is(t, "a", false, Done, `"`+canary+`"`)
}

// In a folder that is kept as long as the workspace, an id that is not known was never
// begun, unless the machine was restarted since.
func TestKeptFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	s, err := OpenKept(dir)
	if err != nil {
		t.Fatal(err)
	}
	if state, _, _, err := s.Begin("a", true); err != nil || state != New {
		t.Errorf("the first runner: %v, %v", state, err)
	}
	if s, err = OpenKept(dir); err != nil {
		t.Fatal(err)
	}
	if state, _, _, err := s.Begin("a", true); err != nil || state != Lost {
		t.Errorf("begun by a runner that died: %v, %v", state, err)
	}
	if state, _, _, err := s.Begin("b", true); err != nil || state != New {
		t.Errorf("the second runner: %v, %v", state, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "boot"), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = OpenKept(dir); err != nil {
		t.Fatal(err)
	}
	if state, _, _, err := s.Begin("c", true); err != nil || state != Lost {
		t.Errorf("after a restart of the machine: %v, %v", state, err)
	}
}

package sandboxtest

import (
	"crypto/sha256"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"deckhand/internal/sandbox"
)

var outputTests = []test[*box]{
	{name: "Huge", run: huge},
	{name: "Edge", run: edge},
	{name: "Characters", run: characters},
	{name: "Invalid", run: invalid},
	{name: "Split", run: split},
	{name: "Lines", run: lines},
	{name: "NobodyWaits", run: nobodyWaits},
}

// mark is how long the words may be that stand for what was cut out.
const mark = 100

// huge: fifty megabytes do not harm, the result has both ends, and the file all of it.
func huge(t *testing.T, b *box) {
	size := int64(50_000_000)
	if testing.Short() {
		size = 5_000_000
	}
	var seen int64
	c := sandbox.Command{Shell: t.Name(), Text: b.program(t) + " flood " + itoa(size)}
	r := b.exec(t, c, func(p []byte) { seen += int64(len(p)) })
	same(t, "exit code", r.Exit, 0)
	same(t, "Bytes", r.Bytes, size)
	if n := utf8.RuneCountInString(r.Output); n > sandbox.MaxOutput+mark || n < sandbox.MaxOutput/2 {
		t.Errorf("the result holds %d characters, want about %d", n, sandbox.MaxOutput)
	}
	if !strings.HasPrefix(r.Output, "the first line\n") || !strings.HasSuffix(r.Output, "the last line\n") {
		t.Errorf("the result does not have both ends: %s", shorten(r.Output))
	}
	if seen == 0 {
		t.Error("nothing came while it ran")
	}
	if r.Whole == "" {
		t.Fatal("the result does not name a file with the whole output")
	}
	// It is the same to those inside and to us.
	same(t, "size of the file with all of it", b.ok(t, "wc -c < %s | tr -d ' '", r.Whole), itoa(size))
	want := sha256.New()
	_, _ = io.WriteString(want, flooded(size))
	got := sha256.New()
	_, err := b.Read(within(t), sandbox.ReadParams{PathParams: at(r.Whole)}, got)
	must(t, err)
	same(t, "the whole output", string(got.Sum(nil)), string(want.Sum(nil)))
}

// flooded is what the helper's flood prints.
func flooded(size int64) string {
	const first, last = "the first line\n", "the last line\n"
	line := strings.Repeat("0123456789", 8) + "\n"
	var w strings.Builder
	w.WriteString(first)
	for left := int(size) - len(first) - len(last); left > 0; left -= len(line) {
		w.WriteString(line[max(0, len(line)-left):])
	}
	w.WriteString(last)
	return w.String()
}

// edge: what just fits is not cut.
func edge(t *testing.T, b *box) {
	for _, size := range []int64{sandbox.MaxOutput - 1, sandbox.MaxOutput, sandbox.MaxOutput + 1} {
		r := b.sh(t, "%s flood %d", b.program(t), size)
		if cut := size > sandbox.MaxOutput; cut != (r.Whole != "") || cut != (r.Output != flooded(size)) {
			t.Errorf("an output of %d characters was cut to %d, and its file is %q", size, len(r.Output), r.Whole)
		}
		if n := utf8.RuneCountInString(r.Output); n > sandbox.MaxOutput+mark {
			t.Errorf("an output of %d characters came as %d", size, n)
		}
		same(t, "Bytes", r.Bytes, size)
	}
}

// characters are counted, not bytes, and none is cut in half.
func characters(t *testing.T, b *box) {
	name, _ := b.folder(t)
	text := strings.Repeat("é", sandbox.MaxOutput-1) + "\n"
	b.put(t, name+"/text", text)
	if r := b.sh(t, "cat %s/%s/text", b.root, name); r.Output != text || r.Whole != "" {
		t.Errorf("%d characters in %d bytes were cut to %d bytes", sandbox.MaxOutput, len(text), len(r.Output))
	}
	b.put(t, name+"/more", strings.Repeat("a日", sandbox.MaxOutput)+"\n")
	r := b.sh(t, "cat %s/%s/more", b.root, name)
	if n := utf8.RuneCountInString(r.Output); n > sandbox.MaxOutput+mark || strings.ContainsRune(r.Output, utf8.RuneError) || !utf8.ValidString(r.Output) {
		t.Errorf("the cut left %d characters, valid: %v", n, utf8.ValidString(r.Output))
	}
}

// invalid: whatever comes, the result is text.
func invalid(t *testing.T, b *box) {
	for _, text := range []string{`printf 'a\377b'`, `printf 'a\303'`, `printf 'a\355\240\200b'`, `printf 'a\000b'`, "head -c 20000 /dev/urandom", `printf 'a\033[31mb\007\010'`} {
		r := b.sh(t, "%s", text)
		if !utf8.ValidString(r.Output) {
			t.Errorf("%s gives what is not UTF-8: %s", text, shorten(r.Output))
		}
		same(t, "exit code of "+text, r.Exit, 0)
		if strings.HasPrefix(text, "printf 'a") && !strings.HasPrefix(r.Output, "a") {
			t.Errorf("%s gives %q", text, r.Output)
		}
	}
	same(t, "afterwards", b.ok(t, "echo free"), "free")
}

// split: a character that comes in two pieces is one.
func split(t *testing.T, b *box) {
	r := b.sh(t, `printf 'a\342\202'; sleep 0.1; printf '\254b\n'`)
	same(t, "output", r.Output, "a€b\n")
}

// lines end as the program ended them.
func lines(t *testing.T, b *box) {
	same(t, "output", b.sh(t, `printf 'one\ntwo\r\nthree\n\n'`).Output, "one\ntwo\r\nthree\n\n")
	same(t, "output", b.sh(t, `printf '\tx  \n'`).Output, "\tx  \n")
	same(t, "a long line", b.sh(t, `printf '%%0500d' 7`).Output, strings.Repeat("0", 499)+"7")
}

// nobodyWaits: a command whose caller goes away runs to its end, and its result
// can be had.
func nobodyWaits(t *testing.T, b *box) {
	_, dir := b.folder(t)
	b.ok(t, "cd %s; mkfifo pipe", dir)
	c := sandbox.Command{ID: newID(t), Shell: t.Name(), Text: "echo one; cat pipe; echo two"}
	ctx, cancel := cancellable(t)
	defer cancel()
	_, err := b.Exec(ctx, c, func([]byte) { cancel() })
	if err == nil {
		t.Fatal("the wait did not end with its context")
	}
	b.in(t, t.Name()+"-other", "echo between > %s/pipe", dir)
	r := b.exec(t, c, nil)
	if r.Exit != 0 || r.Output != "one\nbetween\ntwo\n" {
		t.Errorf("the result is %+v", r)
	}
}

package sandboxtest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/internal/sandbox"
)

var fileTests = []test[*box]{
	{name: "Bytes", run: allBytes},
	{name: "Large", run: largeFile},
	{name: "Ranges", run: ranges},
	{name: "Atomic", run: atomicWrite},
	{name: "Aborted", run: abortedWrite},
	{name: "New", run: newFile},
	{name: "Limit", run: limited},
	{name: "Modes", run: modes},
	{name: "Names", run: allNames},
	{name: "Look", run: look},
	{name: "Irregular", run: irregular},
	{name: "Remove", run: removing},
	{name: "Archive", run: archive},
	{name: "Watch", run: watch},
	{name: "Usage", run: boxUsage},
}

// write writes a file and says how that went.
func (b *box) write(t *testing.T, p sandbox.WriteParams, content string) (sandbox.File, error) {
	t.Helper()
	return b.Write(within(t), p, strings.NewReader(content))
}

// fails checks an error.
func fails(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

func allBytes(t *testing.T, b *box) {
	name, dir := b.folder(t)
	var content []byte
	for i := range 1024 {
		content = append(content, byte(i), byte(i>>2))
	}
	for _, c := range []string{"", "\x00", "no newline", string(content)} {
		f, err := b.write(t, sandbox.WriteParams{PathParams: at(name + "/a/b/file")}, c) // the folders are made
		must(t, err)
		same(t, "size", f.Size, int64(len(c)))
		same(t, "content", b.get(t, name+"/a/b/file"), c)
		same(t, "content by its absolute name", b.get(t, dir+"/a/b/file"), c)
	}
	same(t, "seen inside", b.ok(t, "wc -c < %s/a/b/file | tr -d ' '", dir), "2048")
}

func largeFile(t *testing.T, b *box) {
	name, _ := b.folder(t)
	content := make([]byte, 20<<20)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(content)
	_, err := b.Write(within(t), sandbox.WriteParams{PathParams: at(name + "/large")}, bytes.NewReader(content))
	must(t, err)
	var back bytes.Buffer
	f, err := b.Read(within(t), sandbox.ReadParams{PathParams: at(name + "/large")}, &back)
	must(t, err)
	if !bytes.Equal(back.Bytes(), content) || f.Size != int64(len(content)) {
		t.Errorf("of %d bytes came back %d others, and the size is %d", len(content), back.Len(), f.Size)
	}
}

func ranges(t *testing.T, b *box) {
	name, _ := b.folder(t)
	b.put(t, name+"/file", "0123456789")
	for _, test := range []struct {
		offset, length int64
		want           string
	}{{0, 0, "0123456789"}, {0, 1, "0"}, {3, 4, "3456"}, {3, 0, "3456789"}, {9, 100, "9"}, {10, 0, ""}, {11, 5, ""}, {1 << 40, 1, ""}} {
		var w strings.Builder
		f, err := b.Read(within(t), sandbox.ReadParams{PathParams: at(name + "/file"), Offset: test.offset, Length: test.length}, &w)
		must(t, err)
		same(t, "range", w.String(), test.want)
		same(t, "size of the file", f.Size, 10)
	}
	for _, p := range []sandbox.ReadParams{{Offset: -1}, {Length: -1}} {
		p.PathParams = at(name + "/file")
		_, err := b.Read(within(t), p, io.Discard)
		fails(t, "a range before the beginning", err, sandbox.ErrInvalid)
	}
}

// atomicWrite: a reader sees the old file or the new one.
func atomicWrite(t *testing.T, b *box) {
	name, _ := b.folder(t)
	versions := [2]string{strings.Repeat("a", 1<<20), strings.Repeat("b", 1<<20)}
	b.put(t, name+"/file", versions[0])
	written := make(chan error, 1)
	ctx := within(t)
	go func() {
		for i := range 20 {
			if _, err := b.Write(ctx, sandbox.WriteParams{PathParams: at(name + "/file")}, strings.NewReader(versions[i%2])); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	for done := false; !done; {
		if got := b.get(t, name+"/file"); got != versions[0] && got != versions[1] {
			t.Fatalf("half a file was visible: %s", shorten(got))
		}
		select {
		case err := <-written:
			must(t, err)
			done = true
		default:
		}
	}
}

// abortedWrite: what was not sent to its end is not there, and leaves nothing.
func abortedWrite(t *testing.T, b *box) {
	name, _ := b.folder(t)
	b.put(t, name+"/file", "old")
	for _, target := range []string{"/file", "/fresh"} {
		ctx, cancel := cancellable(t)
		r := io.MultiReader(strings.NewReader(strings.Repeat("x", 300_000)), hook(func() (int, error) { cancel(); return 0, ctx.Err() }))
		if _, err := b.Write(ctx, sandbox.WriteParams{PathParams: at(name + target)}, r); err == nil {
			t.Fatal("half a file was written")
		}
		cancel()
	}
	same(t, "the old file", b.get(t, name+"/file"), "old")
	// The runner is told that the caller is gone, and then tidies up.
	eventually(t, "nothing but the old file is there", func() bool {
		files, err := b.List(within(t), at(name))
		must(t, err)
		return len(files) == 1 && string(files[0].Name) == "file"
	})
}

type hook func() (int, error)

func (h hook) Read([]byte) (int, error) { return h() }

func newFile(t *testing.T, b *box) {
	name, _ := b.folder(t)
	p := sandbox.WriteParams{PathParams: at(name + "/file"), New: true}
	_, err := b.write(t, p, "first")
	must(t, err)
	_, err = b.write(t, p, "second")
	fails(t, "a new file where there is one", err, fs.ErrExist)
	b.ok(t, "ln -s nowhere %s/%s/dangling", b.root, name)
	p.Path = []byte(name + "/dangling")
	_, err = b.write(t, p, "third")
	fails(t, "a new file where there is a link", err, fs.ErrExist)
	same(t, "the first", b.get(t, name+"/file"), "first")
	// Of many who make it, one does.
	won := make(chan int, 8)
	all(t, 8, func(i int) error {
		_, err := b.Write(within(t), sandbox.WriteParams{PathParams: at(name + "/raced"), New: true}, strings.NewReader(itoa(int64(i))))
		if err == nil {
			won <- i
		} else if !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	})
	same(t, "how many made the same new file", len(won), 1)
	same(t, "who made it", b.get(t, name+"/raced"), itoa(int64(<-won)))
}

func limited(t *testing.T, b *box) {
	name, _ := b.folder(t)
	b.put(t, name+"/file", "old")
	_, err := b.write(t, sandbox.WriteParams{PathParams: at(name + "/file"), Limit: 10}, "0123456789")
	must(t, err)
	for _, size := range []int{11, 5 << 20} {
		_, err = b.write(t, sandbox.WriteParams{PathParams: at(name + "/file"), Limit: 10}, strings.Repeat("x", size))
		fails(t, "more than the limit", err, sandbox.ErrTooBig)
	}
	same(t, "what was there", b.get(t, name+"/file"), "0123456789")
	files, err := b.List(within(t), at(name))
	must(t, err)
	same(t, "number of files", len(files), 1)
}

func modes(t *testing.T, b *box) {
	name, dir := b.folder(t)
	mode := func(file string) string {
		t.Helper()
		perm, _, _ := strings.Cut(b.ok(t, "ls -ld %s/%s", dir, file), " ")
		return strings.TrimRight(perm, ".+")
	}
	b.put(t, name+"/plain", "x")
	same(t, "mode by default", mode("plain"), "-rw-r--r--")
	_, err := b.write(t, sandbox.WriteParams{PathParams: at(name + "/program"), Mode: 0o755}, "#!/bin/sh\necho I run\n")
	must(t, err)
	same(t, "mode that was asked for", mode("program"), "-rwxr-xr-x")
	same(t, "the program", b.ok(t, "%s/program", dir), "I run")
	b.put(t, name+"/program", "#!/bin/sh\necho I still run\n")
	same(t, "mode of a file that was replaced", mode("program"), "-rwxr-xr-x")
	same(t, "the program", b.ok(t, "%s/program", dir), "I still run")
	b.ok(t, "echo more >> %s/plain && rm %s/plain", dir, dir) // it belongs to who works here
}

// allNames: a name is any bytes but / and the zero byte.
func allNames(t *testing.T, b *box) {
	name, dir := b.folder(t)
	names := []string{"-rf", "...", " ", "~", "*", "a\nb", "\xff\xfe", "日本", "e\u0301", strings.Repeat("n", 255), ".hidden", "C:\\x", "'\"`$(id)"}
	for c := 1; c < 256; c++ {
		if c != '/' {
			names = append(names, "n"+string([]byte{byte(c)})+"n")
		}
	}
	for _, n := range names {
		b.put(t, name+"/"+n, "content of "+n)
	}
	slices.Sort(names)
	files, err := b.List(within(t), at(name))
	must(t, err)
	var got []string
	for _, f := range files {
		got = append(got, string(f.Name))
	}
	if !slices.Equal(got, names) {
		t.Fatalf("%d names came back as %d, sorted: %v", len(names), len(got), slices.IsSorted(got))
	}
	for _, n := range names {
		same(t, "content", b.get(t, name+"/"+n), "content of "+n)
	}
	same(t, "seen inside", b.ok(t, `cd %s; n=0; for f in * .h* ...; do n=$((n + 1)); done; echo $n`, dir), itoa(int64(len(names))))
	_, err = b.write(t, sandbox.WriteParams{PathParams: at(name + "/a\x00b")}, "")
	fails(t, "a zero byte in a name", err, sandbox.ErrInvalid)
	_, err = b.write(t, sandbox.WriteParams{PathParams: at(name + "/" + strings.Repeat("n", 256))}, "")
	if err == nil {
		t.Error("a name of 256 bytes was taken")
	}
}

func look(t *testing.T, b *box) {
	name, dir := b.folder(t)
	b.put(t, name+"/file", "12345")
	b.ok(t, "cd %s; ln -s file link; ln -s nowhere dangling; mkfifo pipe; mkdir -p sub/deeper", dir)
	files, err := b.List(within(t), at(name))
	must(t, err)
	var got []string
	for _, f := range files {
		got = append(got, f.Mode.Type().String()+" "+string(f.Name)+" "+string(f.Link))
		stat, err := b.Stat(within(t), at(name+"/"+string(f.Name)))
		must(t, err)
		if stat.Mode != f.Mode || stat.Size != f.Size || !bytes.Equal(stat.Link, f.Link) || !stat.Time.Equal(f.Time) {
			t.Errorf("Stat says %+v and List %+v", stat, f)
		}
	}
	same(t, "folder", strings.Join(got, "\n"),
		"L--------- dangling nowhere\n---------- file \nL--------- link file\np--------- pipe \nd--------- sub ")
	f, err := b.Stat(within(t), at(name+"/file"))
	must(t, err)
	if f.Size != 5 || f.Time.Before(time.Now().Add(-time.Hour)) || f.Time.After(time.Now().Add(time.Hour)) || f.IsDir() {
		t.Errorf("a fresh file is %+v", f)
	}
	for what, err := range map[string]error{
		"stat": second(b.Stat(within(t), at(name+"/none"))), "list": second(b.List(within(t), at(name+"/none"))),
		"read": second(b.Read(within(t), sandbox.ReadParams{PathParams: at(name + "/none")}, io.Discard)),
		"pack": b.Archive(within(t), sandbox.ArchiveParams{PathParams: at(name + "/none"), Format: sandbox.Zip}, io.Discard),
	} {
		fails(t, what+" of what is not there", err, fs.ErrNotExist)
	}
	must(t, b.Mkdir(within(t), at(name+"/x/y/z")))
	must(t, b.Mkdir(within(t), at(name+"/x/y/z")))
	if err := b.Mkdir(within(t), at(name+"/file/z")); err == nil {
		t.Error("a folder was made in a file")
	}
	root, err := b.Stat(within(t), at("."))
	must(t, err)
	same(t, "the workspace is a folder", root.IsDir(), true)
}

func second[T any](_ T, err error) error { return err }

// irregular: no call waits for what may never come.
func irregular(t *testing.T, b *box) {
	name, dir := b.folder(t)
	b.ok(t, "cd %s; mkfifo pipe; ln -s pipe link; ln -s /dev/zero zero; mkdir sub", dir)
	for _, file := range []string{"pipe", "link", "zero", "sub", "."} {
		_, err := b.Read(within(t), sandbox.ReadParams{PathParams: at(name + "/" + file)}, io.Discard)
		fails(t, "reading "+file, err, sandbox.ErrInvalid)
	}
	for _, file := range []string{"/dev/null", "/dev/tty", "/proc"} {
		_, err := b.Read(within(t), sandbox.ReadParams{PathParams: at(file)}, io.Discard)
		fails(t, "reading "+file, err, sandbox.ErrInvalid)
	}
	_, err := b.write(t, sandbox.WriteParams{PathParams: at(name + "/sub")}, "x")
	if err == nil {
		t.Error("a folder was replaced by a file")
	}
	if r, err := b.Edit(within(t), sandbox.EditParams{Command: "view", Path: dir + "/pipe"}); err != nil || !r.Failed {
		t.Errorf("viewing a pipe: %+v, %v", r, err)
	}
}

func removing(t *testing.T, b *box) {
	name, dir := b.folder(t)
	b.ok(t, "cd %s; mkdir -p sub/deep; echo x > sub/deep/file; ln -s / sub/root; echo keep > keep; ln -s keep link; mkfifo sub/pipe", dir)
	must(t, b.Remove(within(t), at(name+"/sub")))
	must(t, b.Remove(within(t), at(name+"/link")))
	same(t, "what is left", b.ok(t, "ls -A"), "keep")
	if err := b.Remove(within(t), at(name+"/none")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removing what is not there: %v", err)
	}
}

// archive: both kinds read back what was packed.
func archive(t *testing.T, b *box) {
	name, dir := b.folder(t)
	b.put(t, name+"/plain", "text")
	b.put(t, name+"/sub/ünï", "\x00\xff")
	b.ok(t, "cd %s; chmod 755 plain; mkdir empty; ln -s /etc/passwd link; ln -s sub folder; mkfifo pipe", dir)
	want := map[string]string{
		"plain": "-rwxr-xr-x text", "sub/": "d", "sub/ünï": "-rw-r--r-- \x00\xff", "empty/": "d", "link": "L /etc/passwd", "folder": "L sub",
	}
	for format, unpack := range map[sandbox.Format]func(*testing.T, []byte) map[string]string{sandbox.Zip: unzip, sandbox.Tar: untar} {
		var packed bytes.Buffer
		must(t, b.Archive(within(t), sandbox.ArchiveParams{PathParams: at(name), Format: format}, &packed))
		got := unpack(t, packed.Bytes())
		for file, content := range want {
			same(t, string(format)+": "+file, got[file], content)
			delete(got, file)
		}
		if len(got) > 0 {
			t.Errorf("%s also has %v", format, got)
		}
	}
	err := b.Archive(within(t), sandbox.ArchiveParams{PathParams: at(name), Format: "rar"}, io.Discard)
	fails(t, "an unknown format", err, sandbox.ErrInvalid)
}

func entry(mode fs.FileMode, content, link string) string {
	switch mode.Type() {
	case fs.ModeDir:
		return "d"
	case fs.ModeSymlink:
		return "L " + link
	}
	return mode.String() + " " + content
}

func unzip(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	must(t, err)
	out := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		must(t, err)
		content, err := io.ReadAll(r)
		must(t, err)
		out[f.Name] = entry(f.Mode(), string(content), string(content))
	}
	return out
}

func untar(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	out := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(packed)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		must(t, err)
		content, err := io.ReadAll(r)
		must(t, err)
		out[h.Name] = entry(h.FileInfo().Mode(), string(content), h.Linkname)
	}
}

// watch: changes are reported, also in folders that are made while watching.
func watch(t *testing.T, b *box) {
	name, dir := b.folder(t)
	ctx, cancel := cancellable(t)
	defer cancel()
	changes := make(chan sandbox.Change, 1000)
	ended := make(chan error, 1)
	go func() { ended <- b.Watch(ctx, at(name), func(c sandbox.Change) { changes <- c }) }()
	told := func(file string, ops ...string) bool {
		t.Helper()
		for {
			select {
			case c := <-changes:
				if path.Base(string(c.Path)) == file && slices.Contains(ops, c.Op) {
					return true
				}
			case err := <-ended:
				t.Fatalf("watching ended: %v", err)
			case <-ctx.Done():
				t.Fatalf("no report that %s was %s", file, ops)
			}
		}
	}
	// The start of the watch is not reported: knock until it has begun.
	knock := time.NewTicker(20 * time.Millisecond)
	defer knock.Stop()
	for begun := false; !begun; {
		select {
		case <-changes:
			begun = true
		case <-knock.C:
			b.ok(t, "cd %s; touch knock; rm knock", dir)
		case <-ctx.Done():
			t.Fatal("nothing was ever told")
		}
	}
	b.ok(t, "echo x > first")
	told("first", "created", "written")
	b.ok(t, "echo y >> first")
	told("first", "written")
	b.ok(t, "mkdir -p new/deep; echo z > new/deep/second")
	told("second", "created", "written")
	b.put(t, name+"/third", "written from outside")
	told("third", "created", "written")
	b.ok(t, "mv first moved")
	told("moved", "created", "written")
	b.ok(t, "rm -r new")
	told("second", "removed")
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("watching ends with %v", err)
	}
}

func boxUsage(t *testing.T, b *box) {
	name, _ := b.folder(t)
	before, err := b.Sandbox.Usage(within(t))
	must(t, err)
	b.put(t, name+"/large", strings.Repeat("0123456789abcdef", 1<<18))
	after, err := b.Sandbox.Usage(within(t))
	must(t, err)
	if after < 4<<20 || before < 0 {
		t.Errorf("with a file of 4 MiB the workspace takes up %d bytes", after)
	}
}

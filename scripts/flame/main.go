// Command flame draws a flame graph: go tool pprof -traces PROFILE | go run ./scripts/flame TITLE > flame.svg
//
// Frames that are too narrow to see are left out until the picture fits into 200 kB.
package main

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"deckhand/internal/clip"
)

func main() {
	title := strings.Join(os.Args[1:], " ")
	root, err := read(os.Stdin)
	if err == nil && root.value == 0 {
		err = fmt.Errorf("there are no samples in it; wanted the output of go tool pprof -traces")
	}
	if err == nil {
		_, err = os.Stdout.Write(fit(root, title))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "flame:", err)
		os.Exit(1)
	}
}

// frame is a function and what it called, with the time of all samples through it.
type frame struct {
	value time.Duration
	calls map[string]*frame
}

// read adds up the stacks, which come leaf first.
func read(in io.Reader) (*frame, error) {
	root := &frame{calls: map[string]*frame{}}
	var stack []string
	var value time.Duration
	flush := func() {
		at := root
		if at.value += value; value == 0 {
			return
		}
		for _, name := range slices.Backward(stack) {
			next := at.calls[name]
			if next == nil {
				next = &frame{calls: map[string]*frame{}}
				at.calls[name] = next
			}
			next.value += value
			at = next
		}
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	begun := false
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "-----------+") {
			flush()
			begun, stack, value = true, nil, 0
			continue
		}
		fields := strings.Fields(strings.TrimSuffix(line, " (inline)"))
		if !begun || len(fields) == 0 || strings.HasSuffix(fields[0], ":") { // labels of a sample have a colon
			continue
		}
		if d, err := time.ParseDuration(fields[0]); err == nil && len(fields) > 1 {
			value, fields = d, fields[1:]
		}
		stack = append(stack, strings.Join(fields, " "))
	}
	flush()
	return root, lines.Err()
}

// The layout in pixels, and how large the picture may be.
const (
	width   = 1200
	line    = 17
	top     = 64
	deepest = 60
	most    = 200_000 // bytes
)

// fit leaves out narrow frames until the picture is small enough.
func fit(root *frame, title string) []byte {
	for least := 0.5; ; least *= 1.5 {
		if picture := draw(root, title, least); len(picture) <= most || least > width {
			return picture
		}
	}
}

const style = `<style>
text{font:11px ui-monospace,monospace;fill:#1f2328}.t{font:600 15px system-ui,sans-serif}.n{font:12px system-ui,sans-serif;fill:#59636e}
.bg{fill:#fff}rect{stroke:#fff;stroke-width:.5}.own{fill:#ffb77c}.sql{fill:#f6d365}.go{fill:#c8d1da}.sys{fill:#a5d6ff}.lib{fill:#aceebb}
.own+text,.sql+text,.go+text,.sys+text,.lib+text{fill:#1f2328}
@media (prefers-color-scheme:dark){.t{fill:#f0f6fc}.n{fill:#9198a1}.bg{fill:#0d1117}rect{stroke:#0d1117}}
</style>`

// kinds are the colours with their legend.
var kinds = [][2]string{{"own", "Deckhand"}, {"sql", "SQLite"}, {"sys", "network and system calls"}, {"lib", "other packages"}, {"go", "Go runtime"}}

func draw(root *frame, title string, least float64) []byte {
	var body bytes.Buffer
	depth := 0
	scale := width / float64(root.value)
	var put func(f *frame, name string, x float64, level int)
	put = func(f *frame, name string, x float64, level int) {
		wide := float64(f.value) * scale
		if wide < least || level > deepest {
			return
		}
		depth = max(depth, level)
		part := fmt.Sprintf("%s: %.1f %%", name, 100*float64(f.value)/float64(root.value))
		fmt.Fprintf(&body, `<g><title>%s</title><rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d"/>`, escape(part), kind(name), x, top+level*line, wide, line-1)
		if letters := int(wide/6.7) - 1; letters >= 4 {
			fmt.Fprintf(&body, `<text x="%.1f" y="%d">%s</text>`, x+3, top+level*line+12, escape(clip.Runes(short(name), letters-1)))
		}
		body.WriteString("</g>\n")
		for _, called := range slices.Sorted(maps.Keys(f.calls)) {
			put(f.calls[called], called, x, level+1)
			x += float64(f.calls[called].value) * scale
		}
	}
	put(root, "all", 0, 0)
	height := top + (depth+1)*line + 8
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n<title>%s</title>\n%s\n", width, height, width, height, escape(title), style)
	fmt.Fprintf(&out, `<rect class="bg" width="%d" height="%d"/><text class="t" x="8" y="22">%s</text>`+"\n", width, height, escape(title))
	for i, k := range kinds {
		fmt.Fprintf(&out, `<rect class="%s" x="%d" y="36" width="12" height="12"/><text class="n" x="%d" y="46">%s</text>`, k[0], 8+i*200, 26+i*200, k[1])
	}
	out.WriteByte('\n')
	out.Write(body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// kind is the colour of a function.
func kind(name string) string {
	for _, k := range []struct{ prefix, class string }{
		{"deckhand/", "own"}, {"main.", "own"}, {"modernc.org/", "sql"}, {"runtime", "go"}, {"internal/runtime", "go"}, {"gcWriteBarrier", "go"},
		{"syscall", "sys"}, {"internal/poll", "sys"}, {"net.", "sys"}, {"golang.org/x/sys", "sys"}, {"internal/syscall", "sys"},
	} {
		if strings.HasPrefix(name, k.prefix) {
			return k.class
		}
	}
	return "lib"
}

// short drops the folders of a package.
func short(name string) string {
	path, rest, ok := strings.Cut(name, "(")
	if !ok {
		rest = ""
	} else {
		rest = "(" + rest
	}
	return path[strings.LastIndex(path, "/")+1:] + rest
}

func escape(text string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(text))
	return out.String()
}

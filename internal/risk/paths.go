package risk

import (
	"path"
	"slices"
	"strings"

	"deckhand/internal/risk/names"
	"deckhand/internal/risk/text"
)

// harmlessFiles take everything and keep nothing.
var harmlessFiles = []string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2"}

// at is where a name leads from the folder that cd went to.
func (j *judge) at(name string) string {
	if strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~") || j.dir == "" {
		return path.Clean(name)
	}
	return path.Join(j.dir, name)
}

// writes rates a file that is written to or removed.
func (j *judge) writes(w arg, reason string) {
	name := j.at(w.text)
	if slices.Contains(harmlessFiles, name) && w.plain() {
		j.add(Low, "It discards output.")
		return
	}
	if w.text == "" && w.known {
		return
	}
	why := names.Sensitive(name)
	switch {
	case why != "":
		j.add(High, why)
	case strings.HasPrefix(w.text, "~") && !strings.Contains(w.text, "/"):
		j.add(High, "It changes a user's home folder.")
	case w.glob && strings.ContainsAny(w.text[:1], "/.~"), !w.known:
		j.add(Unknown, "Which file it changes is only known at run time.")
	default:
		j.add(Medium, reason)
	}
}

// reads rates a file whose content is shown.
func (j *judge) reads(w arg) {
	if words := j.loops[w.variable]; len(words) > 0 {
		for _, word := range words {
			j.reads(word)
		}
		return
	}
	name := j.at(w.text)
	switch {
	case w.process: // rated by itself
	case names.Secrets(name) || w.glob && names.FindsSecrets(name):
		j.add(Medium, "It reads a file that may contain credentials.")
	case !w.known:
		j.add(Medium, "Which file it reads is only known at run time.")
	default:
		j.add(Low, "It only reads.")
	}
}

// ReadPath rates looking at a file.
func ReadPath(name string) (Rating, string) {
	switch {
	case name == "":
		return Unknown, "The file path is missing."
	case Disguised(name):
		return High, "The file name contains invisible or control characters."
	case names.Secrets(name):
		return Medium, "It reads a file that may contain credentials."
	}
	return Low, "It only reads."
}

// WritePath rates changing a file.
func WritePath(name string) (Rating, string) {
	if r, why := ReadPath(name); r == Unknown || r == High {
		return r, why
	}
	if why := names.Sensitive(name); why != "" {
		return High, why
	}
	return Medium, "It changes a file."
}

// Disguised reports whether s holds characters that make it look like another one.
func Disguised(s string) bool { return text.Disguised(s) }

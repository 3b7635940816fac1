package takeover

import (
	"fmt"
	"io"
	"strings"
)

// Write writes one conversation, with what there is to say of it.
func (c Conversation) Write(w io.Writer) {
	fmt.Fprintf(w, "%-8s  %s  %d events  %s\n", c.State, c.From, c.Events, c.Title)
	listed(w, "note", c.Notes)
	listed(w, "problem", c.Problems)
}

// Write writes what became of the settings, and how many conversations there were.
func (r Report) Write(w io.Writer) {
	s := r.Settings
	for _, part := range []struct {
		what  string
		names []string
	}{{"settings imported", s.Imported}, {"settings unchanged", s.Kept}} {
		if len(part.names) > 0 {
			fmt.Fprintf(w, "%s: %s\n", part.what, strings.Join(part.names, ", "))
		}
	}
	listed(w, "note", s.Notes)
	listed(w, "refused", s.Refused)
	listed(w, "problem", r.Problems)
	did := "imported"
	if r.DryRun {
		did = "would be imported; nothing was stored"
	}
	fmt.Fprintf(w, "%d conversations: %d already here, %d failed, %d %s\n", len(r.Conversations), r.Count(Present), r.Count(Failed), r.Count(Imported), did)
}

// listed writes texts of a kind.
func listed(w io.Writer, kind string, all []string) {
	for _, line := range all {
		fmt.Fprintf(w, "    %s: %s\n", kind, line)
	}
}

package bashstate

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// hookWords are those without which a text has no hooks.
var hookWords = []string{"trap", "source", "eval", "BASH_XTRACEFD", ".", "set", "shopt"}

// hooks is compiled when a text may match: most runners never see such a command.
var hooks = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)\b(trap|source|eval|BASH_XTRACEFD)\b|(^|[\s;&|({])\.\s|\b(set|shopt)\b.*\b(vi|emacs)\b`)
})

// MayHook reports whether a bash may have traps after a text, or functions that set some or turn on
// line editing, as "set -o vi" does.
func MayHook(text string) bool {
	return slices.ContainsFunc(hookWords, func(w string) bool { return strings.Contains(text, w) }) && hooks().MatchString(text)
}

var traceTo = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bBASH_XTRACEFD=(\d+)`) })

// TraceTo returns the descriptor that "set -x" writes to after a text, "" if the text does not say so.
func TraceTo(text string) string {
	if strings.Contains(text, "BASH_XTRACEFD=") {
		if m := traceTo().FindStringSubmatch(text); m != nil {
			return m[1]
		}
	}
	return ""
}

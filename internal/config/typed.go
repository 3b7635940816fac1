package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// AsTyped understands what people try first, as with other programs.
func AsTyped(args []string) []string {
	switch {
	case len(args) > 0 && args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case len(args) == 1 && args[0] == "--version":
		return []string{"version"}
	}
	var out []string
	for i, arg := range args {
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if last := len(out) - 1; last >= 0 && negativeNumber.MatchString(arg) && strings.HasPrefix(out[last], "--") && !strings.Contains(out[last], "=") {
			out[last] += "=" + arg // the parser would take it for a short flag
			continue
		}
		out = append(out, arg)
	}
	return out
}

var negativeNumber = regexp.MustCompile(`^-[0-9][0-9.]*[A-Za-z]*$`)

// CheckNegative refuses negative numbers, which have no meaning for any flag. Optional
// values are checked by their commands.
func CheckNegative(k *kong.Context) error {
	for _, f := range k.Flags() {
		if v := f.Target; v.CanInt() && v.Int() < 0 || v.CanFloat() && v.Float() < 0 {
			return fmt.Errorf("--%s must not be negative", f.Name)
		}
	}
	return nil
}

// QuoteTask says what is wrong where a task was given as several words.
func QuoteTask(err *kong.ParseError) error {
	at := err.Context.Selected()
	if at == nil || at.Name != "run" && at.Name != "new" || !strings.HasPrefix(err.Error(), "unexpected argument") {
		return err
	}
	return fmt.Errorf("%w; quote the task: deckhand %s \"fix the failing test\"", err, at.Name)
}

package risk

import (
	"slices"
	"strings"

	"deckhand/internal/risk/names"
)

// gitReads are the subcommands that only look, whatever their operands are.
var gitReads = []string{"status", "log", "diff", "show", "blame", "annotate", "shortlog", "describe", "rev-parse", "rev-list", "ls-files", "ls-tree", "cat-file", "merge-base", "name-rev",
	"for-each-ref", "show-ref", "diff-tree", "diff-index", "diff-files", "whatchanged", "count-objects", "grep", "help", "version", "check-ignore", "cherry", "range-diff"}

// gitChanges are the subcommands that change the work tree or the repository, in ways
// that people expect.
var gitChanges = []string{"add", "commit", "checkout", "switch", "restore", "merge", "rebase", "cherry-pick", "revert", "mv", "rm", "init", "clone", "fetch", "pull", "apply", "am",
	"branch", "tag", "stash", "remote", "config", "worktree", "submodule", "notes", "bisect", "reset", "clean", "gc", "repack", "prune", "sparse-checkout", "format-patch", "archive", "lfs", "reflog", "symbolic-ref", "update-index", "read-tree", "write-tree", "commit-tree", "hash-object", "format-patch"}

func gitRule(c command, args []arg) {
	rest, ok := c.gitOptions(args)
	if !ok || len(rest) == 0 {
		if ok {
			c.add(Low, "It only prints text.")
		}
		return
	}
	if !rest[0].plain() {
		c.add(Unknown, "What git does is only known at run time.")
		return
	}
	sub, args := rest[0].text, rest[1:]
	c.gitDangers(sub, args)
	switch {
	case slices.Contains(gitReads, sub):
		reader(c, args)
		c.add(Low, "It only reads the repository.")
		if opaque(args) {
			c.add(Medium, "What git does is only known at run time.")
		}
	case sub == "push" || sub == "send-email" || sub == "request-pull" || sub == "svn" || sub == "p4":
		c.add(High, "It sends the project's data to another machine.")
	case slices.Contains(gitChanges, sub):
		c.gitChange(sub, args)
	default:
		c.add(Unknown, "It runs an unknown git command or alias.")
	}
}

// gitOptions skips what stands before the subcommand.
func (c command) gitOptions(args []arg) (rest []arg, ok bool) {
	for len(args) > 0 {
		a := args[0]
		switch {
		case !a.known:
			c.add(Unknown, "What git does is only known at run time.")
			return nil, false
		case names.HarmlessGitOption(a.text):
			args = args[1:]
		case a.text == "--version" || a.text == "-v" || a.text == "--help" || a.text == "-h":
			return nil, true // the rest is a topic to explain
		case a.text == "-c" && len(args) > 1 && args[1].plain() && names.HarmlessOverride(args[1].text):
			args = args[2:]
		case a.text == "-C" && len(args) > 1:
			if !args[1].plain() {
				c.add(Medium, "Which repository git looks at is only known at run time.")
			}
			args = args[2:]
		case strings.HasPrefix(a.text, "-"):
			c.add(High, "It changes git's settings, which can make git run other programs.")
			return nil, false
		default:
			return args, true
		}
	}
	return nil, true
}

// gitDangers are options and operands that make git run programs or write files.
func (c command) gitDangers(sub string, args []arg) {
	for i, a := range args {
		switch {
		case strings.Contains(a.text, "ext::"), strings.Contains(a.text, "fd::"):
			c.add(High, "It makes git run a program as a transport.")
		case a.is("--upload-pack"), a.is("--receive-pack"), a.is("--exec"), a.is("--ext-diff"), a.is("--textconv"), a.is("--open-files-in-pager"), a.is("--template"),
			a.is("--config") && sub == "clone", a.is("--extcmd"), a.is("--run"):
			c.add(High, "It makes git run another program.")
		case sub == "grep" && a.short("O"), sub == "rebase" && a.short("x"), sub == "clone" && a.short("cu"), (sub == "bisect" || sub == "submodule") && (a.text == "run" || a.text == "foreach"):
			c.add(High, "It makes git run another program.")
		case a.is("--output"):
			_, name, joined := strings.Cut(a.text, "=")
			to := arg{text: name, known: a.known}
			if !joined && i+1 < len(args) {
				to = args[i+1]
			}
			c.writes(to, "It writes to a file.")
			c.add(Medium, "It writes to a file.")
		}
	}
}

// gitChange rates the subcommands that change something, or only list.
func (c command) gitChange(sub string, args []arg) {
	lists := func(allowed ...string) bool {
		return !slices.ContainsFunc(args, func(a arg) bool { return !a.plain() || !slices.Contains(allowed, a.text) })
	}
	low := false
	switch sub {
	case "branch":
		low = lists("-a", "-r", "-v", "-vv", "--all", "--list", "-l", "--show-current", "--remotes", "--verbose")
	case "tag":
		low = lists("-l", "--list", "-n")
	case "remote":
		low = lists("-v", "show")
	case "stash":
		low = len(args) > 0 && lists("list")
		if len(args) > 0 && (args[0].text == "drop" || args[0].text == "clear") {
			c.add(High, "It discards uncommitted changes; this cannot be undone.")
		}
	case "worktree", "notes":
		low = len(args) > 0 && lists("list")
	case "submodule":
		low = lists("status")
	case "reflog":
		low = lists("show")
		if len(args) > 0 && (args[0].text == "expire" || args[0].text == "delete") {
			c.add(High, "It deletes git's recovery data.")
		}
	case "config":
		low = c.gitConfig(args)
	case "reset", "checkout", "restore", "clean", "rm", "switch":
		if anyOf(args, "fdxq", "--hard", "--force", "--discard-changes") && (sub != "rm" || anyOf(args, "f", "--force")) || slices.ContainsFunc(args, func(a arg) bool { return a.text == "--" || a.text == "." }) {
			c.add(High, "It discards uncommitted changes; this cannot be undone.")
		}
	case "gc", "prune":
		c.add(High, "It deletes git's recovery data.")
	}
	if low {
		c.add(Low, "It only reads the repository.")
		return
	}
	c.add(Medium, "It changes the repository or the files in it.")
}

// gitConfig rates git config; low is true for looking something up.
func (c command) gitConfig(args []arg) (low bool) {
	ops := operands(args)
	if !opaque(args) && (anyOf(args, "l", "--list", "--get", "--get-all") && !anyOf(args, "e", "--edit", "--add", "--unset", "--replace-all", "--file") || len(args) == 1 && len(ops) == 1 && ops[0].plain()) {
		return true
	}
	if len(ops) > 0 && ops[0].plain() && slices.Contains([]string{"get", "set", "unset"}, ops[0].text) { // the subcommands of newer versions
		ops = ops[1:]
	}
	if len(ops) > 0 && ops[0].plain() && names.HarmlessSetting(ops[0].text) && !anyOf(args, "ef", "--edit", "--file", "--blob", "--rename-section") {
		c.add(Medium, "It changes git's settings.")
		return false
	}
	c.add(High, "It changes git's settings, which can make git run other programs.")
	return false
}

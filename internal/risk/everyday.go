package risk

import (
	"slices"
	"strings"

	"deckhand/internal/risk/names"
)

// everyday are common build and test commands, with the options that affect only what is tested and shown. They run code of
// the project. The sandbox contains that code, and changes to it are rated separately. Asking about each of these commands
// would train users to approve without reading.
//
// subs are the subcommands; without any, operands are files, or targets of make. scripts are the subcommands that are followed by
// the name of a script. bare allows the command without a subcommand.
var everyday = map[string]struct {
	subs, scripts, flags string
	bare                 bool
}{
	"go":  {subs: "test build vet list", flags: "-v -race -short -cover -failfast -json -count -run -skip -bench -benchmem -benchtime -timeout -parallel -p -tags -shuffle -m"},
	"npm": {subs: "ci test t", scripts: "run run-script", flags: "-s --silent --no-audit --no-fund --prefer-offline --ignore-scripts"},
	"cargo": {subs: "test build check clippy", flags: "-q --quiet -v --verbose --release --workspace --all --all-targets --all-features --no-default-features --features " +
		"--lib --bins --tests --test --locked --offline --frozen -p --package --no-run"},
	"pytest": {flags: "-q -v -vv -x -s -k -m -l --lf --ff --tb --maxfail --quiet --verbose --exitfirst", bare: true},
	"make":   {flags: "-j -s -k -B --silent --keep-going", bare: true},
}

// goValued are the options of go that take the next argument as their value.
const goValued = "-count -run -skip -bench -benchtime -timeout -parallel -p -tags -shuffle"

// listed reports whether a word is one of the names.
func listed(a arg, names string) bool { return slices.Contains(strings.Fields(names), a.text) }

// workspace is the project's folder in a sandbox.
const workspace = "/workspace"

// leaves reports whether a path is or may be outside the workspace.
func (j *judge) leaves(name string) bool {
	name = j.at(name)
	if strings.HasPrefix(name, "/") {
		return name != workspace && !strings.HasPrefix(name, workspace+"/")
	}
	return strings.HasPrefix(name, "~") || name == ".." || strings.HasPrefix(name, "../")
}

// daily returns a rule that rates everyday uses of a program in the workspace as Low, and applies r to all others.
func daily(name string, r rule) rule {
	return func(c command, args []arg) {
		if c.isEveryday(name, args) {
			c.add(Low, "It builds or tests the project.")
			return
		}
		r(c, args)
	}
}

func (c command) isEveryday(name string, args []arg) bool {
	if c.away || c.leaves(".") {
		return false
	}
	use := everyday[name]
	var ops []arg
	for i, a := range args {
		flag, _, _ := strings.Cut(a.text, "=")
		switch {
		case !a.known || a.glob && !safeGlob(a.text):
			return false
		case name == "go" && i > 0 && listed(args[i-1], goValued) && !strings.HasPrefix(a.text, "-"): // the value of an option
		case !strings.HasPrefix(a.text, "-"):
			ops = append(ops, a)
		case name == "go" && i > 0 && listed(args[i-1], goValued):
			return false
		case !slices.Contains(strings.Fields(use.flags), flag) && !slices.Contains(strings.Fields(use.flags), strings.TrimRight(flag, "0123456789")):
			return false
		}
	}
	outside := func(a arg) bool {
		return c.leaves(a.text) || name == "go" && names.RemotePackage(a.text) || name == "pytest" && strings.HasPrefix(a.text, "@")
	}
	switch {
	case len(ops) == 0:
		return use.bare
	case slices.ContainsFunc(ops, outside):
		return false
	case name == "make":
		return !slices.ContainsFunc(ops, func(a arg) bool { return !names.Script(a.text) && strings.Trim(a.text, "0123456789") != "" })
	case use.subs == "":
		return true
	case listed(ops[0], use.scripts):
		return len(ops) == 2 && names.Script(ops[1].text)
	case use.scripts != "":
		return len(ops) == 1 && listed(ops[0], use.subs)
	}
	return listed(ops[0], use.subs)
}

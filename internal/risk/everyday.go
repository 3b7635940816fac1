package risk

import (
	"slices"
	"strings"
)

// everyday are common build and test commands, with the options that affect only what is tested and shown. They run code of
// the project. The sandbox contains that code, and changes to it are rated separately. Asking about each of these commands
// would train users to approve without reading.
//
// subs are the subcommands or targets; without any, operands are files. scripts are the subcommands that are followed by
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
	"make":   {subs: everydayScripts, flags: "-j -s -k -B --silent --keep-going", bare: true},
}

// everydayScripts are common names of scripts and targets that only build or test.
const everydayScripts = "all build check compile coverage lint test tests test-short typecheck type-check unit vet"

// listed reports whether a word is one of the names. A suffix after a colon is ignored, as in test:unit.
func listed(a arg, names string) bool {
	word, _, _ := strings.Cut(a.text, ":")
	return slices.Contains(strings.Fields(names), word)
}

// daily returns a rule that rates everyday uses of a program as Low, and applies r to all others.
func daily(name string, r rule) rule {
	return func(c command, args []arg) {
		if isEveryday(name, args) {
			c.add(Low, "It builds or tests the project.")
			return
		}
		r(c, args)
	}
}

func isEveryday(name string, args []arg) bool {
	use := everyday[name]
	var ops []arg
	for _, a := range args {
		flag, _, _ := strings.Cut(a.text, "=")
		switch {
		case !a.known || a.glob && !safeGlob(a.text):
			return false
		case !strings.HasPrefix(a.text, "-"):
			ops = append(ops, a)
		case !slices.Contains(strings.Fields(use.flags), flag) && !slices.Contains(strings.Fields(use.flags), strings.TrimRight(flag, "0123456789")):
			return false
		}
	}
	switch {
	case len(ops) == 0:
		return use.bare
	case name == "make":
		return !slices.ContainsFunc(ops, func(a arg) bool { return !listed(a, use.subs) && strings.Trim(a.text, "0123456789") != "" })
	case use.subs == "":
		return true
	case listed(ops[0], use.scripts):
		return len(ops) == 2 && listed(ops[1], everydayScripts)
	case use.scripts != "":
		return len(ops) == 1 && listed(ops[0], use.subs)
	}
	return listed(ops[0], use.subs)
}

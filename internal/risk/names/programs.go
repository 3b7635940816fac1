package names

import (
	"path"
	"slices"
	"strings"
)

// everydayScripts are common names of scripts and targets that only build or test.
const everydayScripts = "all build check compile coverage lint test tests test-short typecheck type-check unit vet"

// everydaySuffixes are the parts that may follow a colon in the name of a script, in addition to everydayScripts.
const everydaySuffixes = "ci dev development e2e fast integration prod production short types"

// Script reports whether the name of a script or target is a common one for building or testing, as in test:unit.
func Script(name string) bool {
	first, suffixes, _ := strings.Cut(name, ":")
	if !slices.Contains(strings.Fields(everydayScripts), first) {
		return false
	}
	for suffix := range strings.SplitSeq(suffixes, ":") {
		if suffix != "" && !slices.Contains(strings.Fields(everydayScripts+" "+everydaySuffixes), suffix) {
			return false
		}
	}
	return true
}

// RemotePackage reports whether go may look up a package or module on the network, which reveals its name. Go does so only
// for names that begin with a host.
func RemotePackage(name string) bool {
	if path.IsAbs(name) || name == "." || name == ".." || strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") {
		return false
	}
	host, _, below := strings.Cut(name, "/")
	return strings.Contains(name, "@") || strings.Contains(host, ".") && (below || !strings.HasSuffix(name, ".go"))
}

// HarmlessSetting reports whether a setting of git makes it run no other program. Settings of three parts name drivers,
// tools and addresses.
func HarmlessSetting(name string) bool {
	section, key, _ := strings.Cut(strings.ToLower(name), ".")
	if strings.Contains(key, ".") || strings.Contains(key, "tool") || key == "templatedir" {
		return section == "color" && key != ""
	}
	return key != "" && slices.Contains([]string{"user", "init", "color", "pull", "push", "fetch", "merge", "rebase", "advice"}, section)
}

// HarmlessGitOption reports whether an option of git before the subcommand takes no value and runs no program.
func HarmlessGitOption(name string) bool {
	return slices.Contains([]string{"--no-pager", "-P", "--no-optional-locks", "--no-replace-objects", "--no-lazy-fetch", "--no-advice", "--literal-pathspecs", "--glob-pathspecs",
		"--noglob-pathspecs", "--icase-pathspecs"}, name)
}

// HarmlessOverride reports whether the value of git -c only changes names, colours, advice or how paths are printed.
func HarmlessOverride(setting string) bool {
	key, _, _ := strings.Cut(strings.ToLower(setting), "=")
	section, name, _ := strings.Cut(key, ".")
	return key == "core.quotepath" || name != "" && slices.Contains([]string{"user", "color", "advice"}, section)
}

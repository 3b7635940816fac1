package mcp

import (
	"strconv"
	"strings"
)

const (
	// maxToolName is what all models take.
	maxToolName = 64
	// maxServerName leaves room for the tool's own name behind it.
	maxServerName = 32
)

// clean makes a name of letters, digits, _ and -, at most n long.
func clean(name string, n int) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if name = name[:min(len(name), n)]; name == "" {
		return "_"
	}
	return name
}

// callable makes a name that all models take: Gemini's must begin with a letter or _.
func callable(name string) string {
	if name != "" && strings.IndexByte("-0123456789", name[0]) >= 0 {
		name = "_" + name
	}
	return clean(name, maxToolName)
}

// unique is the name, or the name with the first number behind it that is free.
func unique(name string, taken func(string) bool) string {
	base := name
	for i := 2; taken(name); i++ {
		end := "_" + strconv.Itoa(i)
		name = base[:min(len(base), maxToolName-len(end))] + end
	}
	return name
}

// toolKey is a tool among all of a session.
type toolKey struct{ server, tool string }

// names are what the model calls the tools. A name that was given stays with
// its tool: the model may remember having used it.
type names struct {
	reserved map[string]bool
	given    map[toolKey]string
	taken    map[string]toolKey
}

func newNames() *names {
	return &names{given: map[toolKey]string{}, taken: map[string]toolKey{}}
}

// reserve says which names are not to be given. Tools that have one get another.
func (n *names) reserve(list []string) {
	n.reserved = map[string]bool{}
	for _, name := range list {
		n.reserved[name] = true
		if k, ok := n.taken[name]; ok {
			delete(n.taken, name)
			delete(n.given, k)
		}
	}
}

// of is the name of a tool: its own, or with its server's in front if that is taken.
func (n *names) of(k toolKey) string {
	if name, ok := n.given[k]; ok {
		return name
	}
	taken := func(name string) bool {
		_, used := n.taken[name]
		return used || n.reserved[name]
	}
	name := callable(k.tool)
	if taken(name) {
		name = unique(callable(clean(k.server, maxServerName)+"_"+k.tool), taken)
	}
	n.given[k], n.taken[name] = name, k
	return name
}

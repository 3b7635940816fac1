package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// arrow is one rule about the direction of imports. Folders are written as
// "a/b" for exactly that, "a/b/..." for it and all below, "a/b/*" for all below
// but not itself, and "..." for everything.
type arrow struct {
	from   []string // whom the rule binds
	except []string // whom it does not
	never  []string // folders of ours that they may not import
	only   []string // if not nil: the only folders of ours that they may import
	std    bool     // nothing from outside but the standard library
	tests  bool     // binds tests too
	why    string

	// breach is an importing folder and an import path that the rule must catch.
	breach [2]string
}

var arrows = []arrow{
	{
		from: []string{"..."}, except: []string{"cmd/..."}, never: []string{"cmd/..."}, tests: true,
		why:    "cmd knows everything, so whoever imports it knows everything too; what others need belongs in a package of its own",
		breach: [2]string{"internal/live", "deckhand/cmd/deckhand"},
	},
	{
		from: []string{"api/..."}, only: []string{},
		why:    "api is the contract: a client depends on it alone, so it brings nothing else along",
		breach: [2]string{"api", "deckhand/internal/session"},
	},
	{
		from: []string{"api/..."}, std: true,
		why:    "api is the contract: a client depends on it alone, so it brings no module of others along",
		breach: [2]string{"api", "example.com/json"},
	},
	{
		from: []string{"internal/session"}, only: []string{},
		why:    "session is the core: its rules are pure and must not bend to the wire (api), to a database or to a model",
		breach: [2]string{"internal/session", "deckhand/api"},
	},
	{
		from: []string{"internal/session"}, std: true,
		why:    "session is the core: nothing that somebody else releases may change what a stored event means",
		breach: [2]string{"internal/session", "example.com/uuid"},
	},
	{
		from: []string{"internal/session/*"}, only: []string{"internal/session/..."},
		why:    "what lies below the core implements or tests its Log; it needs the core and nothing above",
		breach: [2]string{"internal/session/memlog", "deckhand/internal/live"},
	},
	{
		from: []string{"internal/clip"}, only: []string{}, std: true,
		why:    "clip is small enough for every package to import, because it imports nothing",
		breach: [2]string{"internal/clip", "deckhand/api"},
	},
	{
		from: []string{"internal/cluster/..."}, only: []string{"internal/cluster/...", "internal/session"},
		why:    "cluster says who may work on a session; it knows sessions by their ids and rows, and neither who works on them nor where they are stored",
		breach: [2]string{"internal/cluster", "deckhand/internal/agent"},
	},
	{
		from: []string{"internal/cluster"}, std: true,
		why:    "cluster is a port: what speaks to a database or a message server implements it in a folder of its own",
		breach: [2]string{"internal/cluster", "example.com/nats"},
	},
	{
		from: []string{"internal/queue"}, only: []string{},
		why:    "the queue keeps work for any package and knows none of them: what an item means is the business of its owner's package",
		breach: [2]string{"internal/queue", "deckhand/internal/notify"},
	},
	{
		from:   []string{"internal/httpapi/..."},
		never:  []string{"internal/agent/...", "internal/store/...", "internal/llm/..."},
		why:    "the API appends to the log and answers; the loop, the database and the models are met through ports, or a request would wait for them",
		breach: [2]string{"internal/httpapi", "deckhand/internal/agent"},
	},
	{
		from:   []string{"internal/conversation/..."},
		never:  []string{"internal/httpapi/...", "internal/agent/...", "internal/store/...", "internal/llm/...", "internal/trigger/...", "internal/socketio/..."},
		why:    "the use cases lie below all entry points: a rule that knew one could not be called by the others",
		breach: [2]string{"internal/conversation", "deckhand/internal/httpapi"},
	},
	{
		from:   []string{"internal/cli/..."},
		never:  []string{"internal/httpapi/...", "internal/agent/...", "internal/store/...", "internal/profile/...", "internal/workspace/..."},
		why:    "the commands are clients: what they can do to a conversation, every client of the API can",
		breach: [2]string{"internal/cli", "deckhand/internal/httpapi"},
	},
	{
		from:   []string{"internal/profile/...", "internal/gitaccess/..."},
		never:  []string{"internal/httpapi/...", "internal/trigger/...", "internal/cli/..."},
		why:    "what a conversation may use is decided below all entry points, so it is the same for all of them",
		breach: [2]string{"internal/gitaccess", "deckhand/internal/trigger"},
	},
	{
		from: []string{"internal/agent/..."}, never: []string{"internal/httpapi/..."},
		why:    "the loop is told that the log grew and appends to it; knowing the API would make a second coupling beside the log",
		breach: [2]string{"internal/agent", "deckhand/internal/httpapi"},
	},
	{
		from: []string{"internal/live/..."}, never: []string{"internal/httpapi/..."},
		why:    "live follows a log and is mounted by the API, not the other way round",
		breach: [2]string{"internal/live", "deckhand/internal/httpapi"},
	},
	{
		from: []string{"internal/sandbox/..."}, never: []string{"internal/session/..."},
		why:    "a sandbox is started, attached and destroyed by its handle; it does not need to know the log",
		breach: [2]string{"internal/sandbox/local", "deckhand/internal/session"},
	},
	{
		from:   []string{"internal/sandbox/local/..."},
		never:  []string{"internal/sandbox/docker/...", "internal/sandbox/host/...", "internal/sandbox/egress"},
		why:    "drivers never know each other, nor who answers the connections that leave a sandbox",
		breach: [2]string{"internal/sandbox/local", "deckhand/internal/sandbox/docker"},
	},
	{
		from:   []string{"internal/sandbox/docker/..."},
		never:  []string{"internal/sandbox/local/...", "internal/sandbox/host/...", "internal/sandbox/egress"},
		why:    "drivers never know each other, nor who answers the connections that leave a sandbox",
		breach: [2]string{"internal/sandbox/docker", "deckhand/internal/sandbox/local"},
	},
	{
		from:   []string{"internal/sandbox/host/..."},
		never:  []string{"internal/sandbox/local/...", "internal/sandbox/docker/...", "internal/sandbox/egress"},
		why:    "drivers never know each other, nor who answers the connections that leave a sandbox",
		breach: [2]string{"internal/sandbox/host", "deckhand/internal/sandbox/local"},
	},
	{
		from: []string{"internal/workspace/..."}, never: []string{"internal/agent/...", "internal/httpapi/..."},
		why:    "the keeper serves the loop and the API alike, so it knows neither",
		breach: [2]string{"internal/workspace", "deckhand/internal/agent"},
	},
	{
		from: []string{"internal/llm/..."}, never: []string{"internal/tool/..."},
		why:    "a model proposes calls as data; running them is the loop's decision, never the model adapter's",
		breach: [2]string{"internal/llm/scripted", "deckhand/internal/tool/bash"},
	},
	{
		from: []string{"internal/socketio/..."}, never: []string{"internal/session/..."},
		why:    "socketio is a transport; what travels on it is the business of those who mount it",
		breach: [2]string{"internal/socketio", "deckhand/internal/session"},
	},
	{
		from: []string{"client/..."}, only: []string{"api/...", "client/..."},
		why:    "the client proves that the contract is enough: with anything internal it could do what its users cannot",
		breach: [2]string{"client", "deckhand/internal/session"},
	},
	{
		from: []string{"..."}, except: []string{"cmd/...", "bench/...", "internal/store/..."}, never: []string{"internal/store/*"},
		why:    "only cmd chooses the database, and bench measures it; whoever else names one cannot run on the other",
		breach: [2]string{"internal/settings", "deckhand/internal/store/sqlite"},
	},
}

// port is a folder whose children are drivers: each child may import its own
// subfolders and what is allowed here, and so never a sibling.
type port struct {
	folder string
	allow  []string
	// except are children that are no drivers: they put drivers together.
	except []string
	why    string
	breach [2]string
}

var ports = []port{
	{
		folder: "internal/store",
		allow: []string{
			"internal/advice", "internal/store", "internal/store/packed", "internal/session", "internal/settings", "internal/secret", "internal/access",
			"internal/cluster", "internal/feedback", "internal/idempotency", "internal/notify", "internal/queue", "internal/trigger", "internal/sandbox/egress", "api",
		},
		except: []string{"internal/store/packed", "internal/store/open"},
		why:    "a database driver serves the small stores that the core declares; sharing code with another driver would tie their SQL together",
		breach: [2]string{"internal/store/sqlite", "deckhand/internal/store/postgres"},
	},
	{
		folder: "internal/llm", allow: []string{"internal/llm", "internal/clip"}, except: []string{"internal/llm/connect"},
		why:    "a model adapter speaks one provider's wire; what two of them share belongs in llm, where the conformance suite sees it",
		breach: [2]string{"internal/llm/openai", "deckhand/internal/llm/scripted"},
	},
	{
		folder: "internal/gitprovider", allow: []string{"internal/gitprovider", "internal/gitprovider/call", "internal/clip"},
		except: []string{"internal/gitprovider/call", "internal/gitprovider/forge"},
		why:    "a forge adapter speaks one forge's API; what two of them share belongs in gitprovider, and how they ask in call",
		breach: [2]string{"internal/gitprovider/github", "deckhand/internal/gitprovider/gitlab"},
	},
}

// match reports whether a folder is one that the patterns mean.
func match(dir string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if p == "..." {
			return true
		}
		if base, ok := strings.CutSuffix(p, "/..."); ok {
			return within(dir, base)
		}
		if base, ok := strings.CutSuffix(p, "/*"); ok {
			return dir != base && within(dir, base)
		}
		return dir == p
	})
}

// check finds the imports that the arrow forbids.
func (a arrow) check(t *tree) []finding {
	var found []finding
	for _, p := range t.pkgs {
		if !match(p.dir, a.from) || match(p.dir, a.except) {
			continue
		}
		for _, f := range p.files {
			if f.test && !a.tests {
				continue
			}
			for imp, at := range t.imports(f) {
				if what := a.breaks(t, imp); what != "" {
					found = append(found, finding{at, fmt.Sprintf("%s imports %s, %s", p.dir, imp, what), a.why})
				}
			}
		}
	}
	return found
}

// breaks says what is wrong with an import, or nothing.
func (a arrow) breaks(t *tree, imp string) string {
	dir, own := t.ours(imp)
	switch {
	case !own && a.std && !t.standard(imp):
		return "which is not in the standard library"
	case own && match(dir, a.never):
		return "which it must never know"
	case own && a.only != nil && !match(dir, a.only) && len(a.only) == 0:
		return "but may import nothing of ours"
	case own && a.only != nil && !match(dir, a.only):
		return "but may import only " + strings.Join(a.only, ", ") + " of ours"
	}
	return ""
}

// check finds the drivers that know more than their port.
func (o port) check(t *tree) []finding {
	var found []finding
	for _, p := range t.pkgs {
		below, ok := strings.CutPrefix(p.dir, o.folder+"/")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(below, "/")
		driver := path.Join(o.folder, name)
		if slices.Contains(o.except, driver) {
			continue
		}
		for _, f := range p.files {
			if f.test {
				continue
			}
			for imp, at := range t.imports(f) {
				dir, own := t.ours(imp)
				if !own || within(dir, driver) || match(dir, o.allow) {
					continue
				}
				what := fmt.Sprintf("driver %s imports %s, but may import only its port (%s)", driver, imp, strings.Join(o.allow, ", "))
				found = append(found, finding{at, what, o.why})
			}
		}
	}
	return found
}

func TestImports(t *testing.T) {
	repo := repository(t)
	for _, a := range arrows {
		report(t, a.check(repo))
	}
	for _, o := range ports {
		report(t, o.check(repo))
	}
}

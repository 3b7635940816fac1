package archtest

import (
	"fmt"
	"strings"
	"testing"
)

// constructor is the only file that names a database: it opens one, for cmd. A driver and what
// lies below it is known to that database's folder alone, and to bench, which measures it.
const (
	constructor = "internal/store/open/open.go"
	opens       = "internal/store/open"
	// packedForm is the form of what all databases store, and none itself.
	packedForm = "internal/store/packed"
	whyStores  = "everything else needs a store.Backend, and runs on any"
)

// storeDrivers are the modules that speak to databases, by the folder that may.
var storeDrivers = map[string]string{
	"modernc.org/sqlite":      "internal/store/sqlite",
	"github.com/jackc/pgx/v5": "internal/store/postgres",
}

// stores finds code that knows which database it runs on.
func stores(t *tree) []finding {
	var found []finding
	for _, p := range t.pkgs {
		if within(p.dir, "bench") {
			continue
		}
		for _, f := range p.files {
			if f.test {
				continue
			}
			for imp, at := range t.imports(f) {
				dir, ours := t.ours(imp)
				below, isStore := strings.CutPrefix(dir, "internal/store/")
				database, _, _ := strings.Cut(below, "/")
				switch {
				case dir == packedForm && within(p.dir, "internal/store"):
				case dir == opens && within(p.dir, "cmd"):
				case ours && isStore && f.path != constructor && !within(p.dir, "internal/store/"+database):
					found = append(found, finding{at, fmt.Sprintf("%s imports %s, but only %s may", f.path, dir, constructor), whyStores})
				case !ours:
					for driver, folder := range storeDrivers {
						if (imp == driver || strings.HasPrefix(imp, driver+"/")) && !within(p.dir, folder) {
							found = append(found, finding{at, fmt.Sprintf("%s imports %s, but only %s may", f.path, imp, folder), whyStores})
						}
					}
				}
			}
		}
	}
	return found
}

func TestOnlyTheConstructorNamesADatabase(t *testing.T) { report(t, stores(repository(t))) }

func TestStoresRule(t *testing.T) {
	opened := "package main\n\nimport _ \"deckhand/internal/store/sqlite\"\n"
	found := stores(planted(t, map[string]string{
		constructor:             strings.Replace(opened, "main", "open", 1),
		"cmd/deckhand/main.go":  "// Command deckhand is the server and the tools around it.\npackage main\n",
		"cmd/deckhand/extra.go": opened,
		"internal/live/live.go": "package live\n\nimport _ \"modernc.org/sqlite/lib\"\n",
		"bench/raw.go":          "package bench\n\nimport _ \"modernc.org/sqlite\"\n",
	}))
	if len(found) != 2 {
		t.Errorf("%+v", found)
	}
	caught(t, found, "cmd/deckhand/extra.go", "internal/store/sqlite")
	caught(t, found, "internal/live/live.go", "modernc.org/sqlite/lib")
}

package peers

import (
	"fmt"
	"os"
	"path/filepath"
)

// Ours is the program under test, started as the peers are, by a script in a folder.
func Ours(program, dir string) (Peer, error) {
	program, err := filepath.Abs(program)
	if err != nil {
		return Peer{}, err
	}
	p := Peer{Name: "ours", Start: filepath.Join(dir, "start")}
	script := fmt.Sprintf("#!/bin/sh\necho \"deckhand http://$BENCH_ADDR @$BENCH_DIR/data/admin.key\"\nexec '%s' serve --addr \"$BENCH_ADDR\" --data-dir \"$BENCH_DIR/data\" --sandbox local\n", program)
	return p, os.WriteFile(p.Start, []byte(script), 0o755)
}

//go:build linux

package fault

import (
	"context"
	"fmt"
	"path/filepath"

	"deckhand/torture/fault/wal"
)

var tornWAL = Fault{
	Name: "torn-wal", What: "kill -9 of a server, then a torn end of the write-ahead log behind the last commit: garbage, half a frame, a frame with a wrong checksum, zeros", Kills: true, Weight: 10, Possible: onSQLite,
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		server := s.server()
		how := wal.Ways[s.Random.IntN(len(wal.Ways))]
		if err := server.Kill(); err != nil {
			return "", err
		}
		done, err := wal.Tear(filepath.Join(server.Dir, "deckhand.db-wal"), how, s.Random)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s: %s: %s", server.Name, how, done), server.Start(ctx)
	},
}

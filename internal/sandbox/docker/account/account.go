// Package account finds the numbers of users in containers that were created and not started.
package account

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
)

// Owner is who files inside a container belong to.
type Owner struct{ UID, GID int }

// IsRoot reports whether a user of a container, as UID[:GID] or with names, is root; "" is.
func IsRoot(user string) bool {
	name, group, grouped := strings.Cut(user, ":")
	return (name == "" || name == "0" || name == "root") && (!grouped || group == "0" || group == "root")
}

// Find looks for a user in a container of an image. Like the engine, it looks up names in the image, and uses a number that is not there as it
// is, with group 0.
func Find(ctx context.Context, engine *client.Client, container, image, user string) (own Owner, err error) {
	name, group, grouped := strings.Cut(user, ":")
	uid, err := strconv.Atoi(name)
	numeric := err == nil
	own.UID = uid
	found := false
	if err := lines(ctx, engine, container, "/etc/passwd", func(f []string) {
		if len(f) > 3 && !found && (f[0] == name || numeric && f[2] == name) {
			u, err1 := strconv.Atoi(f[2])
			g, err2 := strconv.Atoi(f[3])
			if err1 == nil && err2 == nil {
				own, found = Owner{u, g}, true
			}
		}
	}); err != nil {
		return own, err
	}
	if !found && !numeric {
		return own, &sandbox.Unavailable{Reason: fmt.Sprintf("The user %s does not exist in the image %s.", name, image)}
	}
	if !grouped {
		return own, nil
	}
	if own.GID, err = strconv.Atoi(group); err == nil {
		return own, nil
	}
	found = false
	if err := lines(ctx, engine, container, "/etc/group", func(f []string) {
		if n, err := strconv.Atoi(f[min(2, len(f)-1)]); err == nil && f[0] == group && !found {
			own.GID, found = n, true
		}
	}); err != nil {
		return own, err
	}
	if !found {
		return own, &sandbox.Unavailable{Reason: fmt.Sprintf("The group %s does not exist in the image %s.", group, image)}
	}
	return own, nil
}

// maxFile bounds a file of accounts: the image is not trusted.
const maxFile = 1 << 20

// lines passes the fields of each line of a file like /etc/passwd in a container to each. A missing file has none.
func lines(ctx context.Context, engine *client.Client, container, file string, each func([]string)) error {
	got, err := engine.CopyFromContainer(ctx, container, client.CopyFromContainerOptions{SourcePath: file})
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer got.Content.Close()
	r := tar.NewReader(got.Content)
	head, err := r.Next()
	if err != nil || head.Typeflag != tar.TypeReg {
		return nil // a link or nothing: no account is named there
	}
	text, err := io.ReadAll(io.LimitReader(r, maxFile))
	if err != nil {
		return fmt.Errorf("reading %s of the image: %w", file, err)
	}
	for line := range strings.Lines(string(text)) {
		each(strings.Split(strings.TrimRight(line, "\r\n"), ":"))
	}
	return nil
}

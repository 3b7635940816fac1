package registry

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/distribution/reference"

	"deckhand/internal/sandbox/docker/words"
)

// Rule decides which registries users may name as part of an image. The engine connects to a registry, and to the addresses that the
// registry names for logins, from a network that is not the user's.
type Rule struct {
	// Reach checks a host and a port under the policy for addresses that users choose. Nil allows all.
	Reach func(ctx context.Context, address string) error
	// Own is the image that the operator has set. All images of its registry are allowed.
	Own string
	Log *slog.Logger
}

// hubHost is where images without a registry come from. Its addresses are not checked: the server may be unable to resolve names.
const hubHost = "docker.io"

// Auth returns the credentials for the registry of an image, as the function does, if its registry is allowed: one that the operator has a
// login for, that of the operator's own image, or one that Reach allows.
func (r Rule) Auth(ctx context.Context, image string) (string, error) {
	auth, err := Auth(ctx, image)
	if err != nil {
		r.Log.Error("a login for a registry cannot be used", "image", image, "error", err)
		return "", words.Unavailable(nil, "The image %s cannot be pulled: the server cannot use its login for the registry. The log of the server has the reason.", image)
	}
	if auth != "" || r.Reach == nil {
		return auth, nil
	}
	ref, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", nil // the engine says what is wrong with the name
	}
	host := reference.Domain(ref)
	own, err := reference.ParseNormalizedNamed(r.Own)
	if host == hubHost || err == nil && reference.Domain(own) == host {
		return "", nil
	}
	address := host
	if _, _, err := net.SplitHostPort(host); err != nil {
		address += ":443"
	}
	if err := r.Reach(ctx, address); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return "", ctx.Err()
		}
		return "", words.Unavailable(err, "The image %s cannot be pulled: %s.", image, err)
	}
	return "", nil
}

// Package gitgate lets git in a sandbox use tokens that it never sees. Git
// inside is configured to ask http://git.deckhand.internal/https/HOST/… where
// it would ask https://HOST/…. That address exists nowhere: the sandbox's proxy
// knows it, and sends the request on to the host with the token added.
//
// A token opens much more than git. So what may be asked is listed here, and
// nothing else passes: git's own protocol and that of LFS, in their one
// spelling, with bodies that say what they are. In particular a path that the
// host could take for a part of its API is refused.
//
// This package has no connections. It reads paths, chooses credentials, and
// rewrites the few answers that would bring a token into the sandbox; package
// egress does the rest.
package gitgate

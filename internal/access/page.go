package access

import (
	"context"
	"crypto/subtle"
)

// pagePrefix begins a page key, and no other credential.
const pagePrefix = "dhp_"

// PageKey is a key for front ends that must send one and cannot see the cookie. It is made from the browser login and
// says the same, signed for this purpose: nothing is stored, it ends with the login, and the cookie cannot be made
// from it.
func (g *Gate) PageKey(cookie string) (string, error) {
	if len(cookie) > maxHashed {
		return "", ErrUnauthorized
	}
	if _, _, _, err := g.openCookie(cookie); err != nil {
		return "", err
	}
	body, _ := bodyOf(cookie, cookiePrefix)
	return g.pageKeyOf(body), nil
}

// pageKeyOf is the one page key of a login.
func (g *Gate) pageKeyOf(body string) string {
	return pagePrefix + body + "." + g.sign("deckhand page key "+body)
}

// page says whose page key this is, while the login behind it is good. It has no administrator's rights.
func (g *Gate) page(ctx context.Context, presented string) (Identity, error) {
	body, ok := bodyOf(presented, pagePrefix)
	if !ok || len(presented) > maxHashed || subtle.ConstantTimeCompare([]byte(presented), []byte(g.pageKeyOf(body))) != 1 {
		return Identity{}, ErrUnauthorized
	}
	id, err := g.Session(ctx, g.cookieOf(body))
	id.Admin, id.Page = false, err == nil
	return id, err
}

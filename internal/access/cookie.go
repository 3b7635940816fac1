package access

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"time"
)

// CookieLife is how long a browser stays logged in, unless its key ends earlier.
const CookieLife = 30 * 24 * time.Hour

const (
	cookiePrefix = "v1."
	// maxEnded bounds the logins that were ended before their time.
	maxEnded = 10_000
)

// newCookie makes a signed statement that a browser logged in with a key. It is not stored, so logins survive a
// restart; it is only valid together with the key, so revoking the key ends it.
func (g *Gate) newCookie(id Identity, life time.Duration) string {
	expiry := g.now().Add(life).Unix()
	// The last part makes two logins in the same second two cookies, so that ending one leaves the other.
	payload := id.User + "|" + id.KeyID + "|" + strconv.FormatInt(expiry, 10) + "|" + randomHex(8)
	body := base64.RawURLEncoding.EncodeToString([]byte(payload))
	return g.cookieOf(body)
}

// cookieOf is the one cookie that says this.
func (g *Gate) cookieOf(body string) string {
	return cookiePrefix + body + "." + g.sign("deckhand browser login "+cookiePrefix+body)
}

func (g *Gate) sign(text string) string {
	mac := hmac.New(sha256.New, g.cookieKey[:])
	mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// openCookie checks the signature and says what was signed. The signature covers the text as it is, and is compared
// as text, so there is exactly one spelling of every login.
func (g *Gate) openCookie(value string) (user, keyID string, expiry time.Time, err error) {
	body, ok := bodyOf(value, cookiePrefix)
	if !ok || subtle.ConstantTimeCompare([]byte(value), []byte(g.cookieOf(body))) != 1 {
		return "", "", time.Time{}, ErrUnauthorized
	}
	payload, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return "", "", time.Time{}, ErrUnauthorized
	}
	parts := strings.Split(string(payload), "|")
	if len(parts) != 4 {
		return "", "", time.Time{}, ErrUnauthorized
	}
	seconds, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return "", "", time.Time{}, ErrUnauthorized
	}
	return parts[0], parts[1], time.Unix(seconds, 0).UTC(), nil
}

// bodyOf is what stands between a prefix and a signature.
func bodyOf(value, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(value, prefix)
	body, _, dotted := strings.Cut(rest, ".")
	return body, ok && dotted
}

// Session says who is logged in with this cookie. ErrUnauthorized when it is not ours, has ended, or its key has.
func (g *Gate) Session(ctx context.Context, cookie string) (Identity, error) {
	if len(cookie) > maxHashed || !strings.HasPrefix(cookie, cookiePrefix) {
		return Identity{}, ErrUnauthorized
	}
	hash := hashOf(cookie)
	if g.ended.has(hash) {
		return Identity{}, ErrUnauthorized
	}
	known := g.cache.Load()
	if id, ok := known.get(hash); ok {
		return g.unexpired(id)
	}
	user, keyID, expiry, err := g.openCookie(cookie)
	if err != nil {
		return Identity{}, err
	}
	id, err := g.byID(ctx, user, keyID)
	if err != nil {
		return Identity{}, err
	}
	id.ExpiresAt, id.Login = earlier(id.ExpiresAt, &expiry), hash
	if id, err = g.unexpired(id); err != nil {
		return Identity{}, err
	}
	known.put(hash, id)
	return id, nil
}

// Login exchanges a key for a cookie.
func (g *Gate) Login(ctx context.Context, presented string) (cookie string, id Identity, err error) {
	if id, err = g.Authenticate(ctx, presented); err != nil {
		return "", Identity{}, err
	}
	if id.Page { // it would outlive the login that it was made for
		return "", Identity{}, ErrUnauthorized
	}
	return g.loggedIn(ctx, id, CookieLife)
}

// loggedIn makes the cookie and says who it stands for, with the cookie's own end.
func (g *Gate) loggedIn(ctx context.Context, id Identity, life time.Duration) (string, Identity, error) {
	cookie := g.newCookie(id, life)
	id, err := g.Session(ctx, cookie)
	if err != nil {
		return "", Identity{}, err
	}
	return cookie, id, nil
}

// Logout ends one browser login, with its page key. Their streams are closed when it returns. Other servers on the
// same store learn of it within a second, and only running processes remember it: to end a login everywhere and permanently, revoke its key. An unknown cookie is ignored.
func (g *Gate) Logout(cookie string) {
	if len(cookie) > maxHashed {
		return
	}
	if _, _, expiry, err := g.openCookie(cookie); err == nil {
		hash := hashOf(cookie)
		g.ended.add(hash, expiry, g.now())
		g.endLogin(hash)
		if g.Shared != nil {
			_ = g.share(sharedLogout+hex.EncodeToString(hash[:]), "", expiry.Sub(g.now())) // it holds here in any case
		}
	}
}

// endedLogins are cookies that would be good but were logged out.
type endedLogins struct {
	mu sync.RWMutex
	m  map[[32]byte]time.Time // until when it would have been good
}

func (e *endedLogins) has(hash [32]byte) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	_, ok := e.m[hash]
	return ok
}

func (e *endedLogins) add(hash [32]byte, expiry, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.m == nil {
		e.m = map[[32]byte]time.Time{}
	}
	if len(e.m) >= maxEnded {
		e.shrink(now)
	}
	e.m[hash] = expiry
}

// shrink forgets what has expired anyway and, if that is nothing, what expires first.
func (e *endedLogins) shrink(now time.Time) {
	var first [32]byte
	var at time.Time
	for hash, expiry := range e.m {
		if !expiry.After(now) {
			delete(e.m, hash)
		} else if at.IsZero() || expiry.Before(at) {
			first, at = hash, expiry
		}
	}
	if len(e.m) >= maxEnded {
		delete(e.m, first)
	}
}

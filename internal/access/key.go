package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	keyPrefix = "dh_"
	keyLength = len(keyPrefix) + 43 // 43 characters of base64url hold 32 bytes
	// maxHashed bounds what hashOf accepts: longer than any key or cookie, short enough for the stack.
	maxHashed = 256
	maxLabel  = 100
)

// newKey makes a key: 256 random bits.
func newKey() string {
	var b [32]byte
	rand.Read(b[:]) // never fails: the runtime ends the process instead
	return keyPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// randomHex is 2n hex digits.
func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// hashOf is what is stored and looked up. A plain SHA-256 is enough, because keys are 256 random bits: there is no
// dictionary to try, which is the only thing a slow password hash defends against. Callers bound s to maxHashed.
func hashOf(s string) [32]byte {
	var buf [maxHashed]byte // on the stack, so that the hot path does not allocate
	return sha256.Sum256(buf[:copy(buf[:], s)])
}

// wholeKey says whether s has the form of a key. It knows nothing of whether the key is good.
func wholeKey(s string) bool {
	if len(s) != keyLength || !strings.HasPrefix(s, keyPrefix) {
		return false
	}
	_, err := base64.RawURLEncoding.Strict().DecodeString(s[len(keyPrefix):])
	return err == nil && !strings.ContainsAny(s, "\r\n") // which the decoder would skip
}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._@-]{0,63}$`)

// CheckUserName refuses names that could not be written safely in a file name, a log line or a cookie.
func CheckUserName(name string) error {
	if !nameForm.MatchString(name) {
		return &InvalidError{Field: "user", Msg: "a user name must be 1 to 64 characters: a-z, 0-9, '.', '_', '@' and '-', starting with a letter or digit"}
	}
	return nil
}

func checkLabel(label string) error {
	bad := func(r rune) bool { return !unicode.IsPrint(r) }
	if !utf8.ValidString(label) || utf8.RuneCountInString(label) > maxLabel || strings.ContainsFunc(label, bad) {
		return &InvalidError{Field: "name", Msg: "a label must be at most 100 printable characters on one line"}
	}
	return nil
}

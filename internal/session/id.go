package session

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
)

// MaxIDLength bounds an ID; a longer one is refused by the API.
const MaxIDLength = 100

// ID names a session: 1 to 100 characters of A-Z a-z 0-9 _ -, so that it is safe in a path, a header and a file name as it is.
type ID string

// NewID makes an unguessable one: 32 hex digits.
func NewID() ID {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(err) // crypto/rand never fails on a supported system
	}
	return ID(hex.EncodeToString(b[:]))
}

// Check says what is wrong with an ID, or nil.
func (id ID) Check() error {
	if len(id) == 0 || len(id) > MaxIDLength {
		return fmt.Errorf("a conversation ID must have 1 to %d characters", MaxIDLength)
	}
	for i := 0; i < len(id); i++ {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return fmt.Errorf("a conversation ID may only contain A-Z, a-z, 0-9, _ and -")
		}
	}
	return nil
}

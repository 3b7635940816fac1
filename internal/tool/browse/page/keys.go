package page

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp/kb"
)

// modifierNames are the keys that are held while another is pressed.
var modifierNames = map[string]kb.Modifier{
	"Alt": kb.ModifierAlt, "Control": kb.ModifierCtrl, "ControlOrMeta": kb.ModifierCtrl, "Ctrl": kb.ModifierCtrl,
	"Meta": kb.ModifierMeta, "Shift": kb.ModifierShift,
}

// modifierBits is how the protocol writes which of them are held.
func modifierBits(names []string) (bits int64, err error) {
	for _, name := range names {
		bit, ok := modifierNames[name]
		if !ok {
			return 0, fmt.Errorf("there is no modifier %q: they are Alt, Control, Meta and Shift", excerpt(name, 50))
		}
		bits |= int64(bit)
	}
	return bits, nil
}

// namedKeys finds a key by its name, such as ArrowDown.
var namedKeys = sync.OnceValue(func() map[string]rune {
	names := map[string]rune{}
	for r, k := range kb.Keys {
		if old, known := names[k.Key]; !known || r < old { // the same each time
			names[k.Key] = r
		}
	}
	names["Space"] = ' '
	return names
})

// combination is a key with others that are held.
type combination struct {
	key  rune
	held int64
}

// parseKeys reads a combination such as Control+Shift+a or ArrowDown.
func parseKeys(text string) (c combination, err error) {
	rest := text
	for {
		name, after, more := strings.Cut(rest, "+")
		if !more || after == "" && name == "" {
			break
		}
		bit, ok := modifierNames[name]
		if !ok {
			return c, fmt.Errorf("in %q, %q is not a key that is held: those are Alt, Control, Meta and Shift", excerpt(text, 50), excerpt(name, 50))
		}
		c.held |= int64(bit)
		rest = after
	}
	if r, size := utf8.DecodeRuneInString(rest); size > 0 && size == len(rest) {
		c.key = r
		return c, nil
	}
	r, ok := namedKeys()[rest]
	if !ok {
		return c, fmt.Errorf("there is no key %q: it is one character, or a name such as Enter, Tab, Escape, ArrowDown, PageDown, F5", excerpt(rest, 50))
	}
	c.key = r
	return c, nil
}

// key presses and releases a combination on whatever has the keyboard.
func (t *Tab) key(ctx context.Context, text string) error {
	c, err := parseKeys(text)
	if err != nil {
		return err
	}
	// With one of these held, a key commands and writes nothing.
	commands := c.held&int64(kb.ModifierCtrl|kb.ModifierMeta|kb.ModifierAlt) != 0
	for _, e := range kb.Encode(c.key) {
		if commands && e.Type == kb.KeyChar {
			continue
		}
		p := *e
		p.Modifiers |= c.held
		if p.Type == kb.KeyDown && commands {
			p.Type, p.Commands = input.DispatchKeyEventTypeRawKeyDown, editing(c)
		}
		if _, err := call(ctx, t, input.DispatchKeyEvent, p); err != nil {
			return err
		}
	}
	return nil
}

// editing returns the editing commands of a key combination in a field. A headless browser has
// no window system that would add them.
func editing(c combination) []string {
	if c.held != int64(kb.ModifierCtrl) {
		return nil
	}
	switch c.key {
	case 'a', 'A':
		return []string{"selectAll"}
	case 'c', 'C':
		return []string{"copy"}
	case 'x', 'X':
		return []string{"cut"}
	case 'v', 'V':
		return []string{"paste"}
	case 'z', 'Z':
		return []string{"undo"}
	}
	return nil
}

package browse

import "time"

// SetIdle sets how long an unused connection is kept.
func (t *Tool) SetIdle(d time.Duration) { t.idle = d }

// Connected says whether there is a connection to a session's browser.
func (t *Tool) Connected(session string) bool {
	t.mu.Lock()
	v := t.visits[session]
	t.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.browser != nil
}

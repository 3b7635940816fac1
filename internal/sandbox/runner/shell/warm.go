package shell

import "syscall"

// Warm starts the main shell ahead of its first command, which then does not
// wait for it. What goes wrong shows when the shell is used.
func (s *Shells) Warm() {
	sh, err := s.shell("", true)
	if err != nil {
		return
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.gone || sh.proc != nil {
		return
	}
	if sh.launch() != nil && sh.saved == nil {
		s.forget(sh)
	}
}

// Cool ends a main shell that has not run anything yet: it was started with another environment.
// The next command gets a new one.
func (s *Shells) Cool() {
	sh, err := s.shell("", false)
	if err != nil || sh == nil {
		return
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.proc != nil && sh.counted == 0 {
		_ = sh.proc.Signal(syscall.SIGKILL)
	}
}

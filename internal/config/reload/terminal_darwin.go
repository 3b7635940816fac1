package reload

import "golang.org/x/sys/unix"

// getTermios is the request that reads the mode of a terminal.
const getTermios = unix.TIOCGETA

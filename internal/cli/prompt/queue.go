package prompt

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// QueueHelp explains /queue.
const QueueHelp = "use /queue edit N, /queue delete N or /queue send N"

// Queue reads the arguments of /queue for n messages: the action, and the index of the message. The number may be omitted if there is one
// message. Without arguments, the action is "".
func Queue(arguments string, n int) (action string, at int, err error) {
	words := strings.Fields(arguments)
	if len(words) == 0 {
		return "", 0, nil
	}
	number, err := 1, error(nil)
	if len(words) > 1 {
		number, err = strconv.Atoi(words[1])
	}
	known := words[0] == "edit" || words[0] == "delete" || words[0] == "send"
	switch {
	case !known || err != nil || len(words) > 2 || len(words) == 1 && n > 1:
		return "", 0, errors.New(QueueHelp)
	case number < 1 || number > n:
		return "", 0, fmt.Errorf("there is no queued message %d", number)
	}
	return words[0], number - 1, nil
}

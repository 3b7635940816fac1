package nats

import (
	"bufio"
	"strings"
)

func reader(said string) *bufio.Reader { return bufio.NewReader(strings.NewReader(said)) }

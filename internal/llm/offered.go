package llm

import (
	"bytes"
	"slices"
	"sync"
)

// offered are the tools of a request as they are sent.
type offered struct {
	wire  string
	tools []Tool
	json  []byte
}

// lately are the last tools that were written. Most conversations offer the same ones, which
// are then written and kept once and not by each of them.
var lately struct {
	mu  sync.Mutex
	all []*offered // the latest last
}

// maxLately bounds how many different sets of tools are kept.
const maxLately = 16

// offer returns tools as they are sent. If they were not written lately, write does it.
func offer(wire string, tools []Tool, write func() []byte) []byte {
	lately.mu.Lock()
	defer lately.mu.Unlock()
	i := slices.IndexFunc(lately.all, func(o *offered) bool {
		return o.wire == wire && slices.EqualFunc(o.tools, tools, sameTool)
	})
	var o *offered
	if i >= 0 {
		o = lately.all[i]
		lately.all = slices.Delete(lately.all, i, i+1)
	} else {
		o = &offered{wire, tools, bytes.Clone(write())}
		if len(lately.all) == maxLately {
			lately.all = slices.Delete(lately.all, 0, 1)
		}
	}
	lately.all = append(lately.all, o)
	return o.json
}

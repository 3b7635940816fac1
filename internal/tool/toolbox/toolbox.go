// Package toolbox lists the tools. It is the one place that knows all of them.
package toolbox

import (
	"slices"

	"deckhand/internal/tool"
	"deckhand/internal/tool/bash"
	"deckhand/internal/tool/browse"
	"deckhand/internal/tool/delegate"
	"deckhand/internal/tool/edit"
	"deckhand/internal/tool/fetch"
	"deckhand/internal/tool/finish"
	"deckhand/internal/tool/glob"
	"deckhand/internal/tool/grep"
	"deckhand/internal/tool/propose"
	"deckhand/internal/tool/retired"
	"deckhand/internal/tool/search"
	"deckhand/internal/tool/skill"
	"deckhand/internal/tool/tasks"
	"deckhand/internal/tool/think"
)

// tools in the order in which models are told of them: it is kept, because it stands at
// the beginning of every request. This is where one is added.
var tools = []tool.Descriptor{
	bash.Descriptor, think.Descriptor, finish.Descriptor, browse.Descriptor, tasks.Descriptor, edit.Descriptor,
	grep.Descriptor, glob.Descriptor, fetch.Descriptor, skill.Descriptor, delegate.Descriptor, search.Descriptor,
}

func init() {
	for _, d := range slices.Concat(tools, propose.Descriptors(), retired.Descriptors()) {
		tool.Register(d)
	}
}

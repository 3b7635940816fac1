package agent

import (
	"sync"

	"deckhand/internal/tool/delegate"
)

// ahead returns what to do when the model begins to call a tool: the sandbox is started while the rest of the answer
// comes. Conversations that call no tool have none. nil if there is nothing to start. What goes wrong shows when the call is run.
func (l *Loop) ahead(w *worker) func(tool string) {
	if l.Workspaces == nil || w.warming != nil {
		return nil
	}
	if st, ok := l.Sessions.Peek(w.id); !ok || st.Up || st.Created.Parent != "" || st.Unprepared() {
		return nil
	}
	start := sync.OnceFunc(func() {
		w.tasks.Go(func() {
			if _, release, err := l.Workspaces.Use(w.during, w.id); err == nil {
				release()
			}
		})
	})
	return func(name string) {
		for _, t := range w.tools {
			if _, other := t.(delegate.Tool); t.Spec().Name == name && !other && !t.Spec().Harmless {
				start()
			}
		}
	}
}

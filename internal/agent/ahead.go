package agent

import (
	"context"
	"sync"
)

// ahead returns what to do when the model begins to call a tool: if the tool needs the sandbox, that is started while the rest of
// the answer comes. Conversations that call no such tool have none. nil if there is nothing to start. What goes wrong shows when the call is run.
func (l *Loop) ahead(ctx context.Context, w *worker) func(tool string) {
	if l.Workspaces == nil || w.warming != nil {
		return nil
	}
	if st, ok := l.Sessions.Known(ctx, w.id); !ok || st.Up || st.Created.Parent != "" || st.Unprepared() {
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
			if s := t.Spec(); s.Name == name && s.Sandbox {
				start()
			}
		}
	}
}

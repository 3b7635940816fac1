package httpapi

import (
	"testing"

	"deckhand/internal/session"
)

// A conversation whose sandbox is being started says STARTING: legacy front ends do not
// ask a RUNNING one again for minutes.
func TestStatusWhileASandboxStarts(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	id := r.create(`{}`)
	look := func(status, runtime string) {
		t.Helper()
		r.do("GET", "/api/conversations/"+id, "").want(t, 200, `"status":"`+status+`"`, `"runtime_status":"`+runtime+`"`)
		r.do("GET", "/api/conversations", "").want(t, 200, `"status":"`+status+`"`, `"runtime_status":"`+runtime+`"`)
	}
	look("STARTING", "STATUS$STARTING_RUNTIME")
	claim := r.take(id)
	look("RUNNING", "STATUS$READY")
	for _, c := range []struct{ step, runtime string }{
		{"pulling", "STATUS$BUILDING_RUNTIME"}, {"starting", "STATUS$STARTING_RUNTIME"}, {"cloning", "STATUS$SETTING_UP_WORKSPACE"},
	} {
		r.update(id, func(s session.State) ([]session.Payload, error) {
			return s.Progressed(claim, session.WorkspaceStep{Step: c.step})
		})
		look("STARTING", c.runtime)
	}
	r.update(id, func(s session.State) ([]session.Payload, error) { return s.Prepared(claim, session.WorkspaceReady{}) })
	look("RUNNING", "STATUS$READY")
}

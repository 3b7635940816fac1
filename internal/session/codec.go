package session

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// The kinds as they are stored.
const (
	KindCreated        Kind = "created"
	KindUserSaid       Kind = "user_said"
	KindClaimed        Kind = "claimed"
	KindWorkspaceReady Kind = "workspace_ready"
	KindWorkspaceStep  Kind = "workspace_step"
	KindCheckedOut     Kind = "checked_out"
	KindSetUp          Kind = "set_up"
	KindTrustSet       Kind = "trust_set"
	KindSetUpBegan     Kind = "set_up_began"
	KindHookSet        Kind = "hook_set"
	KindEgressSet      Kind = "egress_set"
	KindOverridden     Kind = "overridden"
	KindCheckpointed   Kind = "checkpointed"
	KindRestored       Kind = "restored"
	KindWithdrawn      Kind = "withdrawn"
	KindBriefed        Kind = "briefed"
	KindRecallAsked    Kind = "recall_asked"
	KindRecalled       Kind = "recalled"
	KindNudged         Kind = "nudged"
	KindReplayed       Kind = "replayed"
	KindGranted        Kind = "granted"
	KindSettled        Kind = "settled"
	KindCapped         Kind = "capped"
	KindTurnBegan      Kind = "turn_began"
	KindModelAsked     Kind = "model_asked"
	KindModelAnswered  Kind = "model_answered"
	KindModelFailed    Kind = "model_failed"
	KindToolCalled     Kind = "tool_called"
	KindToolReturned   Kind = "tool_returned"
	KindCommandTyped   Kind = "command_typed"
	KindCommandEnded   Kind = "command_ended"
	KindApprovalAsked  Kind = "approval_asked"
	KindApprovalGiven  Kind = "approval_given"
	KindCondensed      Kind = "condensed"
	KindCompactAsked   Kind = "compact_asked"
	KindStateChanged   Kind = "state_changed"
	KindTurnEnded      Kind = "turn_ended"
	KindPauseRequested Kind = "pause_requested"
	KindPaused         Kind = "paused"
	KindResumed        Kind = "resumed"
	KindStopped        Kind = "stopped"
	KindStartRequested Kind = "start_requested"
	KindFailed         Kind = "failed"
	KindTitled         Kind = "titled"
	KindRequestOpened  Kind = "request_opened"
	KindNoted          Kind = "noted"
	KindImported       Kind = "imported"
	KindDeleted        Kind = "deleted"
)

// Kind makes each of them a Payload.
func (Created) Kind() Kind        { return KindCreated }
func (UserSaid) Kind() Kind       { return KindUserSaid }
func (Claimed) Kind() Kind        { return KindClaimed }
func (WorkspaceReady) Kind() Kind { return KindWorkspaceReady }
func (WorkspaceStep) Kind() Kind  { return KindWorkspaceStep }
func (CheckedOut) Kind() Kind     { return KindCheckedOut }
func (SetUp) Kind() Kind          { return KindSetUp }
func (TrustSet) Kind() Kind       { return KindTrustSet }
func (SetUpBegan) Kind() Kind     { return KindSetUpBegan }
func (HookSet) Kind() Kind        { return KindHookSet }
func (EgressSet) Kind() Kind      { return KindEgressSet }
func (Overridden) Kind() Kind     { return KindOverridden }
func (Checkpointed) Kind() Kind   { return KindCheckpointed }
func (Restored) Kind() Kind       { return KindRestored }
func (Withdrawn) Kind() Kind      { return KindWithdrawn }
func (Briefed) Kind() Kind        { return KindBriefed }
func (RecallAsked) Kind() Kind    { return KindRecallAsked }
func (Recalled) Kind() Kind       { return KindRecalled }
func (Nudged) Kind() Kind         { return KindNudged }
func (Replayed) Kind() Kind       { return KindReplayed }
func (Granted) Kind() Kind        { return KindGranted }
func (Settled) Kind() Kind        { return KindSettled }
func (Capped) Kind() Kind         { return KindCapped }
func (TurnBegan) Kind() Kind      { return KindTurnBegan }
func (ModelAsked) Kind() Kind     { return KindModelAsked }
func (ModelAnswered) Kind() Kind  { return KindModelAnswered }
func (ModelFailed) Kind() Kind    { return KindModelFailed }
func (ToolCalled) Kind() Kind     { return KindToolCalled }
func (ToolReturned) Kind() Kind   { return KindToolReturned }
func (CommandTyped) Kind() Kind   { return KindCommandTyped }
func (CommandEnded) Kind() Kind   { return KindCommandEnded }
func (ApprovalAsked) Kind() Kind  { return KindApprovalAsked }
func (ApprovalGiven) Kind() Kind  { return KindApprovalGiven }
func (Condensed) Kind() Kind      { return KindCondensed }
func (CompactAsked) Kind() Kind   { return KindCompactAsked }
func (StateChanged) Kind() Kind   { return KindStateChanged }
func (TurnEnded) Kind() Kind      { return KindTurnEnded }
func (PauseRequested) Kind() Kind { return KindPauseRequested }
func (Paused) Kind() Kind         { return KindPaused }
func (Resumed) Kind() Kind        { return KindResumed }
func (Stopped) Kind() Kind        { return KindStopped }
func (StartRequested) Kind() Kind { return KindStartRequested }
func (Failed) Kind() Kind         { return KindFailed }
func (Titled) Kind() Kind         { return KindTitled }
func (RequestOpened) Kind() Kind  { return KindRequestOpened }
func (Noted) Kind() Kind          { return KindNoted }
func (Imported) Kind() Kind       { return KindImported }
func (Deleted) Kind() Kind        { return KindDeleted }

// kinds is how a stored kind finds its type again.
var kinds = func() map[Kind]reflect.Type {
	m := map[Kind]reflect.Type{}
	for _, p := range Payloads() {
		m[p.Kind()] = reflect.TypeOf(p)
	}
	return m
}()

// Payloads is one zero value of every kind, in the order of docs/events.md.
func Payloads() []Payload {
	return []Payload{
		Created{}, UserSaid{}, Withdrawn{}, Claimed{}, WorkspaceReady{}, WorkspaceStep{}, CheckedOut{}, SetUp{}, TrustSet{}, SetUpBegan{}, HookSet{}, EgressSet{}, Overridden{}, Checkpointed{}, Restored{}, Briefed{}, RecallAsked{},
		Recalled{}, Nudged{}, Replayed{}, Granted{}, Settled{}, Capped{}, TurnBegan{}, ModelAsked{}, ModelAnswered{}, ModelFailed{}, ToolCalled{}, ToolReturned{}, CommandTyped{}, CommandEnded{}, ApprovalAsked{}, ApprovalGiven{},
		CompactAsked{}, Condensed{}, StateChanged{}, TurnEnded{}, PauseRequested{}, Paused{}, Resumed{}, Stopped{}, StartRequested{}, Failed{}, Titled{}, RequestOpened{}, Noted{}, Imported{}, Deleted{},
	}
}

// Encode is how stores write a payload; the kind is kept beside it.
func Encode(p Payload) (b []byte, err error) {
	if b, err = json.Marshal(p); err != nil {
		err = fmt.Errorf("encode %s: %w", p.Kind(), err)
	}
	return b, err
}

// Decode reverses Encode. A kind it does not know is ErrNewer and not skipped: a fold that misses a fact is wrong.
func Decode(k Kind, b []byte) (Payload, error) {
	t, ok := kinds[k]
	switch {
	case !ok && k != "" && strings.Trim(string(k), "abcdefghijklmnopqrstuvwxyz_") == "":
		return nil, fmt.Errorf("%w: it has an event of the unknown kind %q", ErrNewer, k)
	case !ok:
		return nil, fmt.Errorf("%w: %q is not a kind of event", ErrCorrupt, k)
	}
	v := reflect.New(t)
	if err := json.Unmarshal(b, v.Interface()); err != nil {
		return nil, fmt.Errorf("%w: event of kind %q does not decode: %v", ErrCorrupt, k, err)
	}
	return v.Elem().Interface().(Payload), nil
}

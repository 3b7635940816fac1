package session

import (
	"fmt"
	"slices"
)

// Checkpointed says that the files of the workspace are stored as they were after the event UpTo, durably. There is none if nothing changed since the one before.
type Checkpointed struct {
	// Checkpoint is its number among the checkpoints of the workspace.
	Checkpoint int   `json:"checkpoint"`
	UpTo       int64 `json:"up_to"`
	// Files is how many files and folders it has, Changed how many of them differ from the one before, LeftOut how many files it does not have because they are too large or cannot be read.
	Files   int `json:"files"`
	Changed int `json:"changed"`
	LeftOut int `json:"left_out,omitempty"`
	// BetweenTurns means that the changes since the one before are not the agent's, so that a restore keeps them. Mixed means that some may not be, so that it asks.
	BetweenTurns bool `json:"between_turns,omitempty"`
	Mixed        bool `json:"mixed,omitempty"`
	// Bytes is what it added to the store.
	Bytes int64 `json:"bytes"`
}

// RestoreAction is the kind of a restore.
type RestoreAction string

// The actions. Undo undoes the last restore, redo the last undo.
const (
	RestorePoint RestoreAction = "restore"
	RestoreUndo  RestoreAction = "undo"
	RestoreRedo  RestoreAction = "redo"
)

// Restored records that the user restored the files, or the history that the model sees, to the state after an event.
type Restored struct {
	Action RestoreAction `json:"action"`
	// Point is the event. An undo or redo has that of the restore it is about.
	Point int64 `json:"point"`
	// Files means that files were restored: Checkpoint is the state now, Before the state before.
	Files      bool `json:"files,omitempty"`
	Checkpoint int  `json:"checkpoint,omitempty"`
	Before     int  `json:"before,omitempty"`
	// Changed is how many files and folders outside of .git folders were written or removed. Git means that a git history was restored.
	Changed int  `json:"changed,omitempty"`
	Git     bool `json:"git,omitempty"`
	// Conversation means that the model does not see the events between Point and this event; for an undo, that it sees them again.
	Conversation bool `json:"conversation,omitempty"`
}

// maxUndo is how many restores can be taken back.
const maxUndo = 50

// Checkpointed records a checkpoint of the workspace.
func (s State) Checkpointed(c Checkpointed) ([]Payload, error) {
	if err := s.alive(); err != nil || c.Checkpoint <= s.Checkpoint {
		return nil, err
	}
	return []Payload{c}, nil
}

// BeforeTurn returns the last event before the turn that is beginning, or the last event if tools have run in the turn.
func (s State) BeforeTurn() int64 {
	if len(s.said) == 0 || s.InTurn && s.Worked {
		return s.Last
	}
	return s.said[0] - 1
}

// MayRestore refuses a restore while the agent works, and returns the restore that an undo or redo is about.
func (s State) MayRestore(action RestoreAction) (of Restored, err error) {
	if err := s.alive(); err != nil {
		return of, err
	}
	if s.InTurn && !s.Paused || s.Ask != nil || len(s.Open) > 0 || len(s.Typed) > 0 {
		return of, fmt.Errorf("%w: the agent is working; pause or stop it, then restore", ErrRefused)
	}
	list := map[RestoreAction][]Restored{RestoreUndo: s.Undo, RestoreRedo: s.Redo}[action]
	if n := len(list); n > 0 {
		return list[n-1], nil
	} else if action != RestorePoint {
		err = fmt.Errorf("%w: nothing to %s", ErrRefused, action)
	}
	return of, err
}

// Restore records a restore, once: two restores that change files differ in the state before.
func (s State) Restore(r Restored) ([]Payload, error) {
	list := map[bool][]Restored{true: s.Redo, false: s.Undo}[r.Action == RestoreUndo]
	if n := len(list); n > 0 && (r.Changed > 0 || r.Git) && list[n-1] == r {
		return nil, nil
	}
	if _, err := s.MayRestore(r.Action); err != nil {
		return nil, err
	}
	return []Payload{r}, nil
}

func (s State) checkRestore(p Payload) error {
	switch p := p.(type) {
	case Checkpointed:
		if p.Checkpoint < 1 || p.UpTo > s.Last {
			return s.no(p, "a checkpoint has a number and follows its event")
		}
	case Restored:
		switch {
		case p.Point < 1 || p.Point > s.Last:
			return s.no(p, "the point lies within the log")
		case !p.Files && !p.Conversation:
			return s.no(p, "something is restored")
		case s.Ask != nil || len(s.Open) > 0:
			return s.no(p, "nothing is under way")
		}
	}
	return nil
}

// applyRestored keeps the two lists: a redo takes back an undo.
func (s State) applyRestored(p Restored) State {
	cut := func(list []Restored) []Restored { return slices.Clone(list[:max(len(list)-1, 0)]) }
	push := func(list []Restored) []Restored {
		list = append(slices.Clone(list), p)
		return list[max(len(list)-maxUndo, 0):]
	}
	switch p.Action {
	case RestoreUndo:
		s.Undo, s.Redo = cut(s.Undo), push(s.Redo)
	case RestoreRedo:
		s.Undo, s.Redo = push(s.Undo), cut(s.Redo)
	default:
		s.Undo, s.Redo = push(s.Undo), nil
	}
	s.Checkpoint = max(s.Checkpoint, p.Before, p.Checkpoint)
	return s
}

package shell

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/shell/bashstate"
	"deckhand/internal/sandbox/runner/shell/marks"
)

// Saved is a shell as it is kept while its sandbox is suspended.
type Saved = bashstate.Saved

const (
	// maxState bounds what a shell may show of its state.
	maxState = 4 << 20
	saveTime = 5 * time.Second

	notRestored = "The shell was suspended and its state could not be restored: variables, functions and aliases that commands had set may be missing."
)

func inUse(why string) error { return fmt.Errorf("%w: %s", rpc.ErrBusy, why) }

// Save returns what another Shells needs to continue each shell as it is. It fails with
// rpc.ErrBusy if something runs, or would get lost. No call may be made while it works.
func (s *Shells) Save(ctx context.Context) ([]Saved, error) {
	s.mu.Lock()
	busy := len(s.calls)+len(s.running)+len(s.terminals) > 0
	shells := slices.Collect(maps.Values(s.shells))
	s.mu.Unlock()
	if busy {
		return nil, inUse("a command runs or a terminal is open")
	}
	own := map[int]bool{}
	for _, sh := range shells {
		sh.mu.Lock()
		if sh.proc != nil {
			own[sh.proc.PID] = true
		}
		sh.mu.Unlock()
	}
	if slices.ContainsFunc(s.victims(true), func(pid int) bool { return !own[pid] }) {
		return nil, inUse("a process runs")
	}
	var all []Saved
	for _, sh := range shells {
		kept, err := sh.save(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, kept)
	}
	return all, nil
}

func (sh *shell) save(ctx context.Context) (Saved, error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	kept := Saved{Name: sh.name, Dir: sh.dir}
	if sh.saved != nil { // nothing was run since
		kept.State, kept.Dir = sh.saved.State, sh.saved.Dir
	} else if sh.proc != nil && sh.counted > 0 {
		var err error
		if kept.State, err = sh.dump(ctx); err != nil {
			return kept, err
		}
		kept.Dir = sh.dir
	}
	if sh.unread != nil {
		if sh.unread.file != nil {
			return kept, inUse("much output was not read yet")
		}
		kept.Unread = slices.Concat(sh.unread.head, sh.unread.tail.Bytes())
	}
	if sh.over != nil {
		kept.Exit, kept.NewShell = &sh.over.exit, sh.over.newShell
	}
	return kept, nil
}

// dump asks the shell for its state. The caller holds the lock.
func (sh *shell) dump(ctx context.Context) (*bashstate.State, error) {
	p := sh.proc
	if p.dialect != &bash {
		return nil, inUse("only the state of bash can be kept")
	}
	if p.traceTo != "" {
		return nil, inUse("the shell shows its commands elsewhere")
	}
	// The shell may still be on its way from the last command to its prompt.
	for begin := time.Now(); !p.quiet() || !bashstate.OnlyOwnFiles(p.PID, p.pipe); {
		if time.Since(begin) > time.Second {
			return nil, inUse("the shell has open files")
		}
		sh.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		sh.mu.Lock()
	}
	word, before := marks.Word(), p.status
	j := &job{text: bashstate.Dump(word), begun: make(chan struct{}), done: make(chan struct{}), once: true, dump: &bytes.Buffer{}}
	if err := sh.run(j); err != nil {
		return nil, err
	}
	sh.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, saveTime)
	defer cancel()
	var err error
	select {
	case <-j.done:
	case <-ctx.Done():
		err = sh.interrupt(context.WithoutCancel(ctx), time.Second)
	}
	sh.mu.Lock()
	state, wrong := bashstate.Parse(j.dump.Bytes(), word)
	if state != nil && state.Jobs != "" { // it was said to us alone
		sh.add([]byte(state.Jobs))
	}
	if err == nil {
		err = wrong
	}
	if err == nil && state.OwnFunctions() {
		err = state.Readable(ctx, sh.owner.config.Spawner, sh.owner.config.Env())
	}
	if err != nil {
		_ = sh.tell(p, p.lines, quietly("__dh_s="+strconv.Itoa(before))+"\n") // it may take ours for the last command
		return nil, inUse(err.Error())
	}
	if state.Hooked, state.MayERR = p.hooked, p.mayERR; p.hooked && state.Guarded() {
		return nil, inUse("the shell has a trap that runs with commands")
	}
	if strings.HasSuffix(sh.dir, " (deleted)") {
		return nil, inUse("the working directory of the shell was deleted")
	}
	return state, nil
}

// Restore continues shells where Save left them, each with its next command.
func (s *Shells) Restore(all []Saved) {
	for _, kept := range all {
		if kept.State == nil && kept.Exit == nil && len(kept.Unread) == 0 {
			continue
		}
		sh, err := s.shell(kept.Name, true)
		if err != nil {
			continue
		}
		sh.mu.Lock()
		if sh.dir = kept.Dir; kept.State != nil {
			sh.saved = &kept
		}
		if len(kept.Unread) > 0 {
			sh.unread = newWindow(s.keep)
			sh.unread.add(kept.Unread)
		}
		if kept.Exit != nil {
			sh.over = &outcome{*kept.Exit, kept.NewShell}
		}
		sh.mu.Unlock()
	}
}

// Lose has the next command told that the state of the shells was lost.
func (s *Shells) Lose() {
	if sh, err := s.shell("", true); err == nil {
		sh.mu.Lock()
		defer sh.mu.Unlock()
		sh.say(notRestored)
	}
}

// restoring is the line that gives a new process the saved state. It goes ahead of the first
// command. The caller holds the lock.
func (sh *shell) restoring(p *process) string {
	if sh.saved == nil || p.restoring != 0 || p.dialect != &bash {
		return ""
	}
	dir := sh.saved.Place()
	if at := sh.saved.Dir; dir != sh.saved.State.Dir && dir != at {
		sh.say(fmt.Sprintf("The working directory %s does not exist any more. The shell continues in %s.", at, dir))
	}
	env := make([]string, len(p.env))
	for i, e := range p.env {
		env[i], _, _ = strings.Cut(e, "=")
	}
	p.restoring = sh.counted + 1
	sh.counted += 2
	line := bashLine(p, p.restoring, sh.saved.State.Restore(dir, env, p.restoring))
	p.status, p.hooked, p.mayERR = sh.saved.State.Status, sh.saved.State.Hooked, sh.saved.State.MayERR
	p.errexit, p.traced = sh.saved.State.Exit()
	return line
}

// restored notes how giving a process its saved state ended.
func (sh *shell) restored(p *process, m marks.Mark) {
	if p.restoring <= 0 || m.Number != p.restoring && m.Number != p.restoring+1 || m.Kind == marks.Began {
		return
	}
	if m.Number == p.restoring {
		sh.say(notRestored)
	}
	p.restoring = -1
}

package checkout

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/session/scripts"
)

// maxScript is the maximum size of a script that a user is asked to review.
const maxScript = 64 << 10

// scripts handles the repository's scripts as the session says: it asks the user, runs
// them or skips them. It can be called again to continue.
func (w *work) scripts(ctx context.Context, st session.State) error {
	if st.SettingUp != nil && st.SetUp == nil {
		return w.setUp(ctx, st, true)
	}
	if !st.Unprepared() {
		return w.lateHook(ctx, st)
	}
	found, hook, err := w.read(ctx, *st.Checkout)
	if err != nil {
		return err
	}
	t := scripts.Terms{Ask: st.AsksScripts(w.src.Confirm), Question: w.question(st), Confinable: w.Confinable}
	if found.Hook != "" && st.Trusts() && (!t.Ask || scripts.Approved(st, found)) {
		if t.Hooked, err = w.hooks(ctx, st.Checkout.Folder, hook); err != nil {
			return err
		}
	}
	began := false
	st, err = w.Sessions.Update(context.WithoutCancel(ctx), w.id, func(s session.State) ([]session.Payload, error) {
		before := s.SettingUp
		out, err := scripts.Begin(s, found, t)
		for _, p := range out {
			if _, ok := p.(session.SetUpBegan); ok {
				began = before == nil
			}
		}
		return out, err
	})
	if err != nil || !began {
		return err
	}
	return w.setUp(ctx, st, false)
}

// lateHook installs the commit script of a repository that became trusted after it was
// checked out. The script must be the one that was checked out.
func (w *work) lateHook(ctx context.Context, st session.State) error {
	h := st.Hook
	if h == nil || h.Installed || !st.Trusts() || st.AsksScripts(w.src.Confirm) {
		return nil
	}
	text, err := w.text(ctx, st.Checkout.Folder, h.Script)
	if err != nil || text == nil {
		return err
	}
	now := session.HookSet{Script: h.Script, Hash: sandbox.Sum(text), Installed: true}
	if h.Hash != "" && h.Hash != now.Hash {
		now = session.HookSet{Script: h.Script, Hash: h.Hash, Problem: h.Script + " was not installed: it changed since it was cloned."}
	} else if done, err := w.hooks(ctx, st.Checkout.Folder, text); err != nil || !done {
		return err
	}
	_, err = w.Sessions.Update(context.WithoutCancel(ctx), w.id, func(s session.State) ([]session.Payload, error) { return s.SetHook(now) })
	return err
}

// question returns the question for the user.
func (w *work) question(st session.State) session.ApprovalAsked {
	q := session.ApprovalAsked{Reason: "The repository " + st.Created.Repository + " wants to run these scripts."}
	if !st.Trusts() {
		q.Reason += " It is not trusted: the setup script runs without network access and without your secrets, and hooks are not installed."
	}
	if w.AskTime > 0 {
		q.Deadline = time.Now().Add(w.AskTime).UTC().Truncate(time.Microsecond)
		q.Default = w.AcceptLate && st.Created.Outside == ""
	}
	return q
}

// read returns the current scripts, and the text of the commit script.
func (w *work) read(ctx context.Context, done session.CheckedOut) (out scripts.Scripts, hook []byte, err error) {
	all := sha256.New()
	var text strings.Builder
	for _, name := range []string{done.Script, done.Hook} {
		if name == "" {
			continue
		}
		content, err := w.text(ctx, done.Folder, name)
		if err != nil {
			return out, nil, err
		}
		if content == nil {
			continue
		}
		if name == done.Hook {
			out.Hook, hook = sandbox.Sum(content), content
		} else {
			out.SetUp = sandbox.Sum(content)
		}
		switch {
		case len(content) > maxScript:
			out.Problem = fmt.Sprintf("%s is longer than %d KiB, which is too long to be reviewed.", name, maxScript>>10)
		case !utf8.Valid(content) || bytes.ContainsRune(content, 0):
			out.Problem = name + " is not a text file, so it cannot be reviewed."
		}
		fmt.Fprintf(all, "%s\x00%d\x00", name, len(content))
		all.Write(content)
		fmt.Fprintf(&text, "# %s (sha256 %s)\n%s\n", name, sandbox.Sum(content), strings.TrimRight(string(content), "\n"))
	}
	out.Hash, out.Text = hex.EncodeToString(all.Sum(nil)), w.mask.String(text.String())
	return out, hook, nil
}

// text returns a file of the repository, up to slightly more than maxScript, or nil if it
// does not exist.
func (w *work) text(ctx context.Context, folder, name string) ([]byte, error) {
	return w.upTo(ctx, folder, name, maxScript+1)
}

// upTo returns the start of a file of the repository, or nil if it does not exist.
func (w *work) upTo(ctx context.Context, folder, name string, length int64) ([]byte, error) {
	var text bytes.Buffer
	_, err := w.box.Read(ctx, sandbox.ReadParams{PathParams: sandbox.InWorkspace(path.Join(folder, name)), Length: length}, &text)
	switch _, refused := sandbox.Refusal(err); {
	case errors.Is(err, sandbox.ErrLost) || err != nil && ctx.Err() != nil:
		return nil, err
	case refused:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return append([]byte{}, text.Bytes()...), nil
}

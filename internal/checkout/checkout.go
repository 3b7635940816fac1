package checkout

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"path"
	"strings"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/sandbox"
	"deckhand/internal/secret"
	"deckhand/internal/session"
)

// Source is the URL of a repository and its place in the workspace.
type Source struct {
	// URL is an http:// or https:// URL without credentials.
	URL string
	// Folder is the folder in the workspace, or "." for the workspace itself.
	Folder string
	// Coauthored makes commits name the user too; see Coauthor.
	Coauthored bool
	// Confirm asks the user before scripts of the repository run.
	Confirm bool
	// Template does the same for repositories that are made with git init; see Template.
	Template bool
}

// Folder returns the default folder of a repository: its name without the owner.
func Folder(repository string) string {
	name := strings.TrimSuffix(path.Base(repository), ".git")
	if name == "" || name == "." || name == "/" || strings.HasPrefix(name, temporary) {
		return "repository"
	}
	return name
}

// Config is what a Checkout needs.
type Config struct {
	Sessions *session.Sessions
	// Source returns the source of a session's repository.
	Source func(ctx context.Context, st session.State) (Source, error)
	// Mask returns the masker for an owner's secrets; nil masks nothing.
	Mask func(ctx context.Context, owner string) (*secret.Masker, error)
	// Confinable is whether a script can run without network access.
	Confinable bool
	// AskTime is how long the user may take to answer, 0 for no limit. With AcceptLate,
	// scripts run if there is no answer.
	AskTime    time.Duration
	AcceptLate bool
	// CloneTime and SetUpTime are the timeouts of a clone and of a setup script; 0 for
	// the default.
	CloneTime, SetUpTime time.Duration
}

// Default timeouts.
const (
	cloneTime = 30 * time.Minute
	setUpTime = 10 * time.Minute
)

// Checkout clones repositories into workspaces.
type Checkout struct{ Config }

// New returns a Checkout.
func New(c Config) *Checkout {
	if c.CloneTime == 0 {
		c.CloneTime = cloneTime
	}
	if c.SetUpTime == 0 {
		c.SetUpTime = setUpTime
	}
	return &Checkout{c}
}

// work is the checkout of one repository into one workspace.
type work struct {
	*Checkout
	id   session.ID
	box  *sandbox.Sandbox
	want session.Created
	src  Source
	mask *secret.Masker
	// before is the checkout that was lost, or nil.
	before *session.CheckedOut
	// distrusted is set if scripts of an untrusted repository may have run.
	distrusted bool
	tell       func(sandbox.Progress)
}

// Prepare makes sure that the session's repository, if it has one, is in the workspace and set up. Until the user has
// answered about its scripts, it is not set up and session.State.Unprepared stays true. Existing files are left
// unchanged. If the repository cannot be cloned, the error is a *sandbox.Unavailable.
func (c *Checkout) Prepare(ctx context.Context, st session.State, box *sandbox.Sandbox, tell func(sandbox.Progress)) error {
	if st.Created.Parent != "" {
		return nil
	}
	src, err := c.Source(ctx, st)
	if err != nil {
		return err
	}
	w := &work{Checkout: c, id: st.ID, box: box, want: st.Created, src: src, before: st.Checkout, distrusted: st.Checkout != nil && !st.Trusts(), tell: tell}
	if c.Mask != nil {
		if w.mask, err = c.Mask(ctx, st.Owner); err != nil {
			return err
		}
	}
	if src.Template {
		if err := w.template(ctx); err != nil {
			return err
		}
	}
	if st.Created.Repository == "" {
		return nil
	}
	fresh := false
	if st.Checkout != nil {
		if fresh, err = w.missing(ctx, path.Join(st.Checkout.Folder, ".git")); err != nil {
			return err
		}
	}
	if st.Checkout == nil || fresh {
		if st, err = w.checkOut(ctx); err != nil {
			return err
		}
	}
	if err := w.begin(ctx, st.Checkout.Folder); err != nil {
		return err
	}
	return w.scripts(ctx, st)
}

// begin makes shells start in the repository. An older runner that does not support this
// is not an error.
func (w *work) begin(ctx context.Context, folder string) error {
	err := w.box.Begin(ctx, folder)
	if _, refused := sandbox.Refusal(err); refused {
		return nil
	}
	return err
}

// missing reports whether a file does not exist in the workspace.
func (w *work) missing(ctx context.Context, name string) (bool, error) {
	_, err := w.box.Stat(ctx, sandbox.InWorkspace(name))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if _, refused := sandbox.Refusal(err); refused { // it exists, but is not what it should be
		return false, nil
	}
	return false, err
}

// has reports whether a file exists in the workspace, not through a link that leads out
// of it.
func (w *work) has(ctx context.Context, name string) (bool, error) {
	f, err := w.box.Stat(ctx, sandbox.InWorkspace(name))
	if _, refused := sandbox.Refusal(err); refused {
		return false, nil
	}
	return err == nil && !f.IsDir(), err
}

// checkOut clones the repository into its folder and records it.
func (w *work) checkOut(ctx context.Context) (session.State, error) {
	done, err := w.adopt(ctx)
	if err != nil {
		return session.State{}, err
	}
	if done == nil {
		ctx, cancel := context.WithTimeoutCause(ctx, w.CloneTime, errSlow)
		defer cancel()
		done, err = w.clone(ctx)
		if err != nil && errors.Is(context.Cause(ctx), errSlow) {
			err = w.no(cloneFailed, fmt.Sprintf("it took longer than %s", w.CloneTime))
		}
		if err != nil {
			return session.State{}, err
		}
	}
	return w.Sessions.Update(context.WithoutCancel(ctx), w.id, func(s session.State) ([]session.Payload, error) { return s.CheckOut(*done) })
}

var errSlow = errors.New("the clone takes too long")

// marker is the file that identifies a complete clone.
const marker = ".git/deckhand.json"

// adopt returns a complete clone that was not recorded yet, or nil if the folder does not
// exist. Anything else in its place is an error.
func (w *work) adopt(ctx context.Context) (*session.CheckedOut, error) {
	found, err := w.box.List(ctx, sandbox.InWorkspace(w.src.Folder))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(found) == 0 {
		return nil, nil
	}
	if _, refused := sandbox.Refusal(err); err != nil && !refused {
		return nil, err
	}
	var text bytes.Buffer
	_, err = w.box.Read(ctx, sandbox.ReadParams{PathParams: sandbox.InWorkspace(path.Join(w.src.Folder, marker)), Length: 1 << 16}, &text)
	done := &session.CheckedOut{}
	if err == nil && json.Unmarshal(text.Bytes(), done) == nil && done.Repository == w.want.Repository && done.Dir != "" {
		return done, nil
	}
	if errors.Is(err, sandbox.ErrLost) || ctx.Err() != nil {
		return nil, err
	}
	place := "a file or folder named " + w.src.Folder
	if w.src.Folder == "." {
		place = "something else"
	}
	return nil, w.no(cloneFailed, "there is "+place+" where the repository belongs in the workspace; move it away and start the conversation again")
}

// letters are the characters of a generated branch name.
const letters = "abcdefghijklmnopqrstuvwxyz0123456789"

// word returns n random letters.
func word(n int) string {
	b := make([]byte, n)
	for i := range b {
		k, _ := rand.Int(rand.Reader, big.NewInt(int64(len(letters)))) // never fails
		b[i] = letters[k.Int64()]
	}
	return string(b)
}

// checkRequest rejects names that git could interpret as something else. The API checks
// them too.
func (w *work) checkRequest() error {
	if w.want.Branch != "" && !gitprovider.ValidBranch(w.want.Branch) {
		return w.no(branchMissing, "the branch name is not valid")
	}
	if CheckURL(w.src.URL) != nil {
		return w.no(cloneFailed, "only http:// and https:// URLs can be cloned")
	}
	return nil
}
